//! The columns of the built-in kinds. `*` marks those of `-o wide`; `:` gives a type other than
//! string.

#[cfg(test)]
const WORKLOAD: &str = "*Containers,*Images,*Selector";

/// The columns of a table; name and age for kinds without their own.
pub fn of(table: &str) -> &'static str {
    COLUMNS
        .iter()
        .find(|(name, _)| *name == table)
        .map_or("Name,Age", |(_, columns)| columns)
}

const COLUMNS: &[(&str, &str)] = &[
    (
        "/pods",
        "Name,Ready,Status,Restarts,Age,*IP,*Node,*Nominated Node,*Readiness Gates",
    ),
    ("/podtemplates", "Name,Containers,Images,Pod Labels"),
    (
        "policy/poddisruptionbudgets",
        "Name,Min Available,Max Unavailable,Allowed Disruptions:integer,Age",
    ),
    (
        "/replicationcontrollers",
        "Name,Desired:integer,Current:integer,Ready:integer,Age,*Containers,*Images,*Selector",
    ),
    (
        "apps/replicasets",
        "Name,Desired:integer,Current:integer,Ready:integer,Age,*Containers,*Images,*Selector",
    ),
    (
        "apps/daemonsets",
        "Name,Desired:integer,Current:integer,Ready:integer,Up-to-date:integer,Available:integer,Node Selector,Age,*Containers,*Images,*Selector",
    ),
    (
        "batch/jobs",
        "Name,Status,Completions,Duration,Age,*Containers,*Images,*Selector",
    ),
    (
        "batch/cronjobs",
        "Name,Schedule,Timezone,Suspend:boolean,Active:integer,Last Schedule,Age,*Containers,*Images,*Selector",
    ),
    (
        "/services",
        "Name,Type,Cluster-IP,External-IP,Port(s),Age,*Selector",
    ),
    (
        "networking.k8s.io/ingresses",
        "Name,Class,Hosts,Address,Ports,Age",
    ),
    (
        "networking.k8s.io/ingressclasses",
        "Name,Controller,Parameters,Age",
    ),
    ("networking.k8s.io/networkpolicies", "Name,Pod-Selector,Age"),
    ("apps/statefulsets", "Name,Ready,Age,*Containers,*Images"),
    (
        "apps/deployments",
        "Name,Ready,Up-to-date,Available,Age,*Containers,*Images,*Selector",
    ),
    (super::SCALES, "Name,Desired:integer,Available:integer,Age"),
    ("apps/controllerrevisions", "Name,Controller,Revision,Age"),
    ("/endpoints", "Name,Endpoints,Age"),
    (
        "discovery.k8s.io/endpointslices",
        "Name,AddressType,Ports,Endpoints,Age",
    ),
    (
        "/nodes",
        "Name,Status,Roles,Age,Version,*Internal-IP,*External-IP,*OS-Image,*Kernel-Version,*Container-Runtime",
    ),
    ("/events", EVENTS),
    ("events.k8s.io/events", EVENTS),
    ("/namespaces", "Name,Status,Age"),
    ("/secrets", "Name,Type,Data,Age"),
    ("/configmaps", "Name,Data,Age"),
    (
        "/persistentvolumes",
        "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,*VolumeMode",
    ),
    (
        "/persistentvolumeclaims",
        "Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,*VolumeMode",
    ),
    (
        "autoscaling/horizontalpodautoscalers",
        "Name,Reference,Targets,MinPods,MaxPods,Replicas,Age",
    ),
    ("rbac.authorization.k8s.io/rolebindings", BINDINGS),
    ("rbac.authorization.k8s.io/clusterrolebindings", BINDINGS),
    ("rbac.authorization.k8s.io/roles", "Name,Created At:date"),
    (
        "rbac.authorization.k8s.io/clusterroles",
        "Name,Created At:date",
    ),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        "Name,Created At:date",
    ),
    ("coordination.k8s.io/leases", "Name,Holder,Age"),
    (
        "storage.k8s.io/storageclasses",
        "Name,Provisioner,ReclaimPolicy,VolumeBindingMode,AllowVolumeExpansion,Age",
    ),
    ("/resourcequotas", "Name,Request,Limit,Age"),
    ("/limitranges", "Name,Created At:date"),
    (
        "scheduling.k8s.io/priorityclasses",
        "Name,Value:integer,Global-Default:boolean,Age,PreemptionPolicy",
    ),
    (
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "Name,Webhooks:integer,Age",
    ),
    (
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "Name,Webhooks:integer,Age",
    ),
    ("/componentstatuses", "Name,Status,Message,Error"),
    (
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "Name,Validations:integer,ParamKind,Age",
    ),
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        "Name,Mutations:integer,ParamKind,Age",
    ),
    (
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "Name,PolicyName,ParamRef,Age",
    ),
    (
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
        "Name,PolicyName,ParamRef,Age",
    ),
    (
        "certificates.k8s.io/certificatesigningrequests",
        "Name,Age,SignerName,Requestor,RequestedDuration,Condition",
    ),
    (
        "flowcontrol.apiserver.k8s.io/flowschemas",
        "Name,PriorityLevel,MatchingPrecedence,DistinguisherMethod,Age,MissingPL",
    ),
    (
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
        "Name,Type,NominalConcurrencyShares,Queues,HandSize,QueueLengthLimit,Age",
    ),
    ("networking.k8s.io/servicecidrs", "Name,CIDRs,Age"),
    ("networking.k8s.io/ipaddresses", "Name,ParentRef"),
    ("node.k8s.io/runtimeclasses", "Name,Handler,Age"),
    ("resource.k8s.io/resourceclaims", "Name,State,Age"),
    (
        "resource.k8s.io/resourceslices",
        "Name,Node,Driver,Pool,Age",
    ),
    (
        "storage.k8s.io/csidrivers",
        "Name,AttachRequired:boolean,PodInfoOnMount:boolean,StorageCapacity:boolean,TokenRequests,RequiresRepublish:boolean,Modes,Age",
    ),
    ("storage.k8s.io/csinodes", "Name,Drivers:integer,Age"),
    (
        "storage.k8s.io/csistoragecapacities",
        "Name,Created At:date",
    ),
    (
        "storage.k8s.io/volumeattributesclasses",
        "Name,DriverName,Age",
    ),
    (
        "storage.k8s.io/volumeattachments",
        "Name,Attacher,PV,Node,Attached:boolean,Age",
    ),
    (
        "apiregistration.k8s.io/apiservices",
        "Name,Service,Available,Age",
    ),
];

const EVENTS: &str =
    "Last Seen,Type,Reason,Object,*Subobject,*Source,Message,*First Seen,*Count,*Name";
const BINDINGS: &str = "Name,Role,Age,*Users,*Groups,*ServiceAccounts";

#[cfg(test)]
#[test]
fn workload_columns_end_alike() {
    let ends = [
        "apps/deployments",
        "apps/replicasets",
        "apps/daemonsets",
        "batch/jobs",
        "batch/cronjobs",
    ];
    assert!(ends.iter().all(|table| of(table).ends_with(WORKLOAD)));
}
