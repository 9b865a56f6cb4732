// Whom the server trusts: host keys and certificates of repositories, and keys that sign commits.

import { useState } from "react";
import { type Certificate, manage, settings, type SigningKey } from "../api/settings";
import { useAsked } from "../asked";
import { knownHosts } from "../model/project";
import { Ask } from "../parts/ask";
import { Field } from "../parts/fields";
import { useToast } from "../parts/shell";
import type { TableRow } from "../parts/table";
import { List, RowButton } from "./parts";

export function Trust() {
  return (
    <>
      <Certificates />
      <SigningKeys />
    </>
  );
}

function Certificates() {
  const asked = useAsked(settings.certificates);
  const [chosen, setChosen] = useState<"ssh" | "https" | Certificate>();
  const row = (item: Certificate): TableRow => ({
    key: [item.serverName, item.certType, item.certSubType, item.certInfo].join(" "),
    cells: [
      item.serverName,
      `${item.certType} ${item.certSubType ?? ""}`,
      item.certInfo,
      <RowButton title="Remove…" of={`${item.certSubType ?? item.certType} of ${item.serverName}`} danger onClick={() => setChosen(item)} />,
    ],
  });
  const close = () => (setChosen(undefined), asked.again());
  return (
    <>
      <List title="Certificates and known hosts" asked={asked} heads={["Server", "Kind", "Fingerprint or subject", "Change"]} row={row}>
        <button type="button" onClick={() => setChosen("ssh")}>
          Add known hosts…
        </button>
        <button type="button" onClick={() => setChosen("https")}>
          Add a certificate…
        </button>
      </List>
      {chosen === "ssh" && <AddHosts onClose={close} />}
      {chosen === "https" && <AddCertificate onClose={close} />}
      {typeof chosen === "object" && (
        <Ask title={`Remove what is known of ${chosen.serverName}`} confirm="Remove" danger act={() => manage.distrust(chosen)} onClose={close}>
          <p>
            {chosen.certType === "ssh" ? `Its ${chosen.certSubType} host key` : "All certificates of this server"} will not be trusted any more, and its repositories may not be reached.
          </p>
        </Ask>
      )}
    </>
  );
}

function AddHosts({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  return (
    <Ask title="Add known hosts" confirm="Add" wide act={() => manage.trust(knownHosts(text))} onClose={onClose}>
      <Field title="Lines of known_hosts, as ssh-keyscan prints them" name="hosts" rows={6} required placeholder="git.example.org ssh-ed25519 AAAA…" value={text} set={setText} />
    </Ask>
  );
}

function AddCertificate({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState({ serverName: "", pem: "" });
  const act = () => manage.trust([{ serverName: form.serverName.trim(), certType: "https", certData: btoa(form.pem) }]);
  return (
    <Ask title="Add a certificate" confirm="Add" wide act={act} onClose={onClose}>
      <Field title="Server" name="serverName" required placeholder="git.example.org" value={form.serverName} set={(serverName) => setForm({ ...form, serverName })} />
      <Field title="Certificates (PEM)" name="pem" rows={8} required placeholder="-----BEGIN CERTIFICATE-----" value={form.pem} set={(pem) => setForm({ ...form, pem })} />
    </Ask>
  );
}

function SigningKeys() {
  const asked = useAsked(settings.signingKeys);
  const toast = useToast();
  const [chosen, setChosen] = useState<"new" | SigningKey>();
  const [text, setText] = useState("");
  const add = async () => {
    const { created, skipped } = await manage.addSigningKeys(text);
    const [some, known] = [created?.items ?? [], skipped ?? []];
    toast([some.length > 0 && `added: ${some.map(({ keyID }) => keyID).join(", ")}`, known.length > 0 && `was there: ${known.join(", ")}`].filter(Boolean).join("; ") || "The file has no key");
    setText("");
  };
  const row = (item: SigningKey): TableRow => ({
    key: item.keyID,
    cells: [item.keyID, item.subType, item.owner, <RowButton title="Remove…" of={item.keyID} danger onClick={() => setChosen(item)} />],
  });
  const close = () => (setChosen(undefined), asked.again());
  return (
    <>
      <List title="Keys that sign commits" asked={asked} heads={["Key", "Kind", "Owner", "Change"]} row={row}>
        <button type="button" onClick={() => setChosen("new")}>
          Add a GPG key…
        </button>
      </List>
      {chosen === "new" && (
        <Ask title="Add a GPG key" confirm="Add" wide act={add} onClose={close}>
          <Field title="Public key, as gpg --export --armor prints it" name="key" rows={8} required placeholder="-----BEGIN PGP PUBLIC KEY BLOCK-----" value={text} set={setText} />
        </Ask>
      )}
      {typeof chosen === "object" && (
        <Ask title={`Remove the key ${chosen.keyID}`} confirm="Remove" danger act={() => manage.removeSigningKey(chosen.keyID)} onClose={close}>
          <p>Commits of {chosen.owner} are not accepted any more where a project demands signatures.</p>
        </Ask>
      )}
    </>
  );
}
