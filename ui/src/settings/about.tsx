// Who is signed in, what the server is, and where help is.

import { api } from "../api/client";
import { useAsked } from "../asked";
import { versionFacts } from "../model/about";
import { safeUrl } from "../model/url";
import { Copy } from "../parts/copy";
import { Fact, Facts } from "../parts/facts";
import { Failure } from "../parts/shell";
import { ROOT } from "../root";

export function About() {
  return (
    <>
      <User />
      <Version />
      <Help />
    </>
  );
}

function User() {
  const { value, error } = useAsked(api.user);
  return (
    <section className="settings-part" aria-label="You">
      <h2>You</h2>
      {error && <Failure error={error} what="It cannot be said who you are." />}
      {value && (
        <dl className="facts">
          <Fact name="Name">{value.username}</Fact>
          <Fact name="Signed in by">{value.iss && value.iss !== "argocd" ? value.iss : "the control plane itself"}</Fact>
          <Facts name="Groups" lines={value.groups ?? undefined} />
        </dl>
      )}
    </section>
  );
}

function Version() {
  const { value, error } = useAsked(api.version);
  return (
    <section className="settings-part" aria-label="Version">
      <div className="section-head">
        <h2>Version</h2>
        <span className="grow" />
        {value && <Copy text={JSON.stringify(value, undefined, 2)} />}
      </div>
      {error && <Failure error={error} what="The version cannot be read." />}
      {value && (
        <dl className="facts">
          {versionFacts(value).map(([name, text]) => (
            <Fact key={name} name={name}>
              {text}
            </Fact>
          ))}
        </dl>
      )}
    </section>
  );
}

function Help() {
  const help = useAsked(api.settings).value?.help;
  const chat = safeUrl(help?.chatUrl);
  const binaries = Object.entries(help?.binaryUrls ?? {}).flatMap(([name, address]) => {
    const url = safeUrl(address);
    return url ? [[name, url] as const] : [];
  });
  return (
    <section className="settings-part" aria-label="Help">
      <h2>Help</h2>
      <ul className="links">
        {chat && (
          <li>
            <a href={chat} target="_blank" rel="noreferrer">
              {help?.chatText || "Chat"}
            </a>
          </li>
        )}
        <li>
          <a href={`${ROOT}/swagger-ui`} target="_blank" rel="noreferrer">
            The API
          </a>
        </li>
        {binaries.map(([name, url]) => (
          <li key={name}>
            <a href={url} rel="noreferrer">
              Command line for {name}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
