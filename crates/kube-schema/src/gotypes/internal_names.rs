//! The differences between Go's internal and public structs: names that do not follow from the JSON
//! name, and the order of fields.

/// Go names of JSON fields.
const NAMES: &[(&str, &str)] = &[
    ("awsElasticBlockStore", "AWSElasticBlockStore"),
    ("cephfs", "CephFS"),
    ("chapAuthDiscovery", "DiscoveryCHAPAuth"),
    ("chapAuthSession", "SessionCHAPAuth"),
    ("csi", "CSI"),
    ("fc", "FC"),
    ("fsGroup", "FSGroup"),
    ("fsGroupChangePolicy", "FSGroupChangePolicy"),
    ("fsType", "FSType"),
    ("gcePersistentDisk", "GCEPersistentDisk"),
    ("gmsaCredentialSpec", "GMSACredentialSpec"),
    ("gmsaCredentialSpecName", "GMSACredentialSpecName"),
    ("grpc", "GRPC"),
    ("iqn", "IQN"),
    ("iscsi", "ISCSI"),
    ("iscsiInterface", "ISCSIInterface"),
    ("nfs", "NFS"),
    ("os", "OS"),
    ("pdName", "PDName"),
    ("rbd", "RBD"),
    ("seLinuxChangePolicy", "SELinuxChangePolicy"),
    ("seLinuxOptions", "SELinuxOptions"),
    ("sslEnabled", "SSLEnabled"),
    ("storageos", "StorageOS"),
    ("tcpSocket", "TCPSocket"),
    ("tty", "TTY"),
    ("wwids", "WWIDs"),
];

/// Names that differ in one struct only.
const OF_STRUCT: &[(&str, &str, &str)] = &[
    ("core/v1.AzureDiskVolumeSource", "diskURI", "DataDiskURI"),
    (
        "core/v1.GlusterfsPersistentVolumeSource",
        "endpoints",
        "EndpointsName",
    ),
    (
        "core/v1.GlusterfsVolumeSource",
        "endpoints",
        "EndpointsName",
    ),
    ("core/v1.RBDPersistentVolumeSource", "image", "RBDImage"),
    (
        "core/v1.RBDPersistentVolumeSource",
        "monitors",
        "CephMonitors",
    ),
    ("core/v1.RBDPersistentVolumeSource", "pool", "RBDPool"),
    ("core/v1.RBDPersistentVolumeSource", "user", "RadosUser"),
    ("core/v1.RBDVolumeSource", "image", "RBDImage"),
    ("core/v1.RBDVolumeSource", "monitors", "CephMonitors"),
    ("core/v1.RBDVolumeSource", "pool", "RBDPool"),
    ("core/v1.RBDVolumeSource", "user", "RadosUser"),
    ("resource/v1.DeviceAttribute", "bool", "BoolValue"),
    ("resource/v1.DeviceAttribute", "bools", "BoolValues"),
    ("resource/v1.DeviceAttribute", "int", "IntValue"),
    ("resource/v1.DeviceAttribute", "ints", "IntValues"),
    ("resource/v1.DeviceAttribute", "string", "StringValue"),
    ("resource/v1.DeviceAttribute", "strings", "StringValues"),
    ("resource/v1.DeviceAttribute", "version", "VersionValue"),
    ("resource/v1.DeviceAttribute", "versions", "VersionValues"),
];

/// Structs whose fields have another order. Some of a pod's fields are in its security context.
const ORDER: &[(&str, &str)] = &[
    (
        "core/v1.PodSpec",
        "volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy \
         nodeSelector serviceAccountName automountServiceAccountToken nodeName securityContext imagePullSecrets hostname subdomain \
         setHostnameAsFQDN affinity schedulerName tolerations hostAliases priorityClassName priority preemptionPolicy dnsConfig \
         readinessGates runtimeClassName overhead enableServiceLinks topologySpreadConstraints os schedulingGates resourceClaims resources \
         hostnameOverride schedulingGroup",
    ),
    (
        "core/v1.PodSecurityContext",
        "hostNetwork hostPID hostIPC shareProcessNamespace hostUsers seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot \
         supplementalGroups supplementalGroupsPolicy fsGroup fsGroupChangePolicy sysctls seccompProfile appArmorProfile \
         seLinuxChangePolicy",
    ),
    (
        "core/v1.PersistentVolumeSource",
        "gcePersistentDisk awsElasticBlockStore hostPath glusterfs nfs rbd quobyte iscsi flexVolume cinder cephfs fc flocker azureFile \
         vsphereVolume azureDisk photonPersistentDisk portworxVolume scaleIO local storageos csi",
    ),
    (
        "core/v1.VolumeSource",
        "hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs persistentVolumeClaim rbd quobyte \
         flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume azureDisk photonPersistentDisk projected \
         portworxVolume scaleIO storageos csi ephemeral image",
    ),
];

/// The fields of a pod that are in its security context internally.
pub const MOVED: [&str; 5] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];

/// The Go name of a field, if it is not the capitalized JSON name.
pub fn name(of: &str, field: &str) -> Option<&'static str> {
    let own = OF_STRUCT
        .iter()
        .find(|(name, json, _)| *name == of && *json == field)
        .map(|(_, _, go)| *go);
    own.or_else(|| {
        NAMES
            .iter()
            .find(|(json, _)| *json == field)
            .map(|(_, go)| *go)
    })
}

/// The fields of a struct in their order, if that differs.
pub fn order(of: &str) -> Option<impl Iterator<Item = &'static str>> {
    ORDER
        .iter()
        .find(|(name, _)| *name == of)
        .map(|(_, fields)| fields.split_whitespace())
}

/// Structs whose fields are not pointers internally, although they are in JSON.
pub fn is_plain(of: &str) -> bool {
    matches!(
        of,
        "apps/v1.RollingUpdateDaemonSet" | "apps/v1.RollingUpdateDeployment"
    )
}
