// Local accounts: passwords and tokens.

import { useState } from "react";
import { type Account, manage, settings } from "../api/settings";
import { useAsked } from "../asked";
import { seconds } from "../model/project";
import { exact } from "../model/time";
import { Ask } from "../parts/ask";
import { Field } from "../parts/fields";
import { useToast } from "../parts/shell";
import type { TableRow } from "../parts/table";
import { List, NewToken, RowButton } from "./parts";

/** In seconds since 1970, as tokens have it; 0 is never. */
export const moment = (time: number | string | undefined, never: string) => (Number(time) ? exact(new Date(Number(time) * 1000).toISOString()) : never);

type Chosen = { account: Account } & ({ what: "password" } | { what: "token" } | { what: "revoke"; id: string });

export function Accounts() {
  const asked = useAsked(settings.accounts);
  const toast = useToast();
  const [chosen, setChosen] = useState<Chosen>();
  const [token, setToken] = useState("");
  const row = (account: Account): TableRow => {
    const { name } = account;
    const can = account.capabilities ?? [];
    return {
      key: name,
      cells: [
        <>
          {name}
          {!account.enabled && <div className="dim">disabled</div>}
        </>,
        can.join(", ") || "nothing",
        <>
          {(account.tokens ?? []).map(({ id, issuedAt, expiresAt }) => (
            <div key={id} className="tools">
              <span>
                {id}
                <span className="dim">
                  {" "}
                  from {moment(issuedAt, "–")}, until {moment(expiresAt, "it is revoked")}
                </span>
              </span>
              <RowButton title="Revoke…" of={`token ${id} of ${name}`} danger onClick={() => setChosen({ what: "revoke", account, id })} />
            </div>
          ))}
          {(account.tokens ?? []).length === 0 && "–"}
        </>,
        <span className="tools">
          {can.includes("login") && <RowButton title="Change password…" of={`of ${name}`} onClick={() => setChosen({ what: "password", account })} />}
          {can.includes("apiKey") && <RowButton title="New token…" of={`of ${name}`} onClick={() => setChosen({ what: "token", account })} />}
        </span>,
      ],
    };
  };
  const close = () => (setChosen(undefined), asked.again());
  const name = chosen?.account.name ?? "";
  return (
    <>
      {token && <NewToken token={token} onClose={() => setToken("")} />}
      <List title="Accounts" asked={asked} heads={["Name", "May", "Tokens", "Change"]} row={row}>
        <span className="dim">Accounts are made in argocd-cm</span>
      </List>
      {chosen?.what === "password" && <Password name={name} onClose={close} />}
      {chosen?.what === "token" && <TokenDialog of={name} act={(id, expires) => manage.createToken(name, id, expires).then(({ token }) => setToken(token))} onClose={close} />}
      {chosen?.what === "revoke" && (
        <Ask title={`Revoke a token of ${name}`} confirm="Revoke" danger act={() => manage.removeToken(name, chosen.id).then(() => toast("The token is revoked"))} onClose={close}>
          <p>What uses the token {chosen.id} is refused from now on.</p>
        </Ask>
      )}
    </>
  );
}

function Password({ name, onClose }: { name: string; onClose: () => void }) {
  const toast = useToast();
  const [form, setForm] = useState({ current: "", wanted: "", again: "" });
  const act = async () => {
    if (form.wanted !== form.again) throw new Error("The new password and its repetition differ.");
    await manage.changePassword(name, form.current, form.wanted);
    toast(`The password of ${name} is changed. Other sessions of the account end.`);
  };
  return (
    <Ask title={`Change the password of ${name}`} confirm="Change" act={act} onClose={onClose}>
      <Field title="Your current password" name="current" secret required hint="Of the account that you are signed in with" value={form.current} set={(current) => setForm({ ...form, current })} />
      <Field title="New password" name="wanted" secret required value={form.wanted} set={(wanted) => setForm({ ...form, wanted })} />
      <Field title="New password again" name="again" secret required value={form.again} set={(again) => setForm({ ...form, again })} />
    </Ask>
  );
}

/** Of an account, or of a role of a project. */
export function TokenDialog({ of, act, onClose }: { of: string; act: (id: string, expiresIn: number) => Promise<unknown>; onClose: () => void }) {
  const [form, setForm] = useState({ id: "", expires: "30d" });
  const submit = async () => {
    const expiresIn = seconds(form.expires);
    if (expiresIn === undefined) throw new Error(`Expires after: ${form.expires} is not a number with d, h or m.`);
    await act(form.id.trim(), expiresIn);
  };
  return (
    <Ask title={`New token of ${of}`} confirm="Create" act={submit} onClose={onClose}>
      <Field title="Id" name="id" hint="Empty: one is made" value={form.id} set={(id) => setForm({ ...form, id })} />
      <Field title="Expires after" name="expires" hint="Such as 30d, 12h, 15m; empty: never" value={form.expires} set={(expires) => setForm({ ...form, expires })} />
    </Ask>
  );
}
