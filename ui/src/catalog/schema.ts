// The form that a chart's schema describes, and the values that its answers are. Pure.

type Schema = Record<string, unknown>;

/** A note is no answer: it says why there is none. */
export type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "note";

/** One answer of the form. */
export interface Field {
  /** Where the value is. */
  path: string[];
  title: string;
  description: string;
  kind: Kind;
  /** Of a choice, as JSON. */
  choices: string[];
  /** As the form shows it: of a choice JSON. Empty: the schema names none. */
  fallback: string;
}

/** What the schema of a stranger may ask for. */
const FIELDS = 200;
const DEPTH = 8;

const isMap = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const words = (value: unknown) => (typeof value === "string" ? value : "");

/** A schema that another one refers to, within the same document only. */
function target(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#/")) return undefined;
  const steps = reference.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce<unknown>((at, step) => (isMap(at) && Object.hasOwn(at, step) ? at[step] : undefined), root);
}

function resolved(root: Schema, schema: unknown): Schema | undefined {
  for (let hops = 0; isMap(schema) && typeof schema.$ref === "string"; hops++) {
    if (hops === DEPTH) return undefined;
    const { $ref, ...own } = schema;
    const found = target(root, words($ref));
    schema = isMap(found) ? { ...found, ...own } : undefined;
  }
  return isMap(schema) ? schema : undefined;
}

function kindOf(schema: Schema): Kind | undefined {
  if (Array.isArray(schema.enum)) return schema.enum.length > 0 ? "choice" : undefined;
  const types: unknown[] = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== "null");
  const [type, ...others] = types;
  if (others.length > 0) return undefined;
  if (type === "string") return "text";
  return type === "number" || type === "integer" || type === "boolean" ? type : undefined;
}

function shown(kind: Kind, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (kind === "choice") return JSON.stringify(value);
  return typeof value === "object" ? "" : String(value as string | number | boolean);
}

/** The fields of a schema in its own order. Lists, and what has no one type, are left to the text. */
export function fieldsOf(text: string | undefined): Field[] {
  let root: unknown;
  try {
    root = JSON.parse(text || "null");
  } catch {
    return [];
  }
  if (!isMap(root)) return [];
  const document = root;
  const fields: Field[] = [];
  const visit = (schema: unknown, path: string[]) => {
    const found = resolved(document, schema);
    const elsewhere = isMap(schema) ? words(schema.$ref) : "";
    if (elsewhere && !elsewhere.startsWith("#") && path.length > 0 && fields.length < FIELDS) {
      const description = `schema not available: ${elsewhere}`;
      fields.push({ path, title: path.join("."), description, kind: "note", choices: [], fallback: "" });
      return;
    }
    if (!found || path.length > DEPTH || fields.length >= FIELDS) return;
    if (isMap(found.properties)) {
      for (const [name, below] of Object.entries(found.properties)) if (name !== "__proto__") visit(below, [...path, name]);
      return;
    }
    const kind = kindOf(found);
    if (!kind || path.length === 0) return;
    fields.push({
      path,
      title: words(found.title) || path.join("."),
      description: words(found.description),
      kind,
      choices: kind === "choice" ? (found.enum as unknown[]).map((choice) => JSON.stringify(choice)) : [],
      fallback: shown(kind, found.default),
    });
  };
  visit(document, []);
  return fields;
}

/** Answers by the path of their field, its parts separated by a NUL. */
export type Answers = Record<string, string>;

export const nameOf = (field: Field) => field.path.join("\0");

function valueOf(field: Field, answer: string): unknown {
  switch (field.kind) {
    case "text":
      return answer;
    case "choice":
      return field.choices.includes(answer) ? (JSON.parse(answer) as unknown) : undefined;
    case "note":
      return undefined;
    case "boolean":
      return answer === "true" ? true : answer === "false" ? false : undefined;
    default: {
      const number = Number(answer);
      const good = answer.trim() !== "" && Number.isFinite(number) && (field.kind === "number" || Number.isInteger(number));
      return good ? number : undefined;
    }
  }
}

/** The values that differ from the defaults: what nobody answered is left to the chart. */
export function valuesOf(fields: Field[], answers: Answers): Schema {
  const values: Schema = {};
  for (const field of fields) {
    const name = nameOf(field);
    const answer = Object.hasOwn(answers, name) ? answers[name] : undefined;
    if (answer === undefined) continue;
    const value = valueOf(field, answer);
    if (value === undefined) continue;
    let at = values;
    for (const step of field.path.slice(0, -1)) {
      const below = Object.hasOwn(at, step) ? at[step] : undefined;
      at = isMap(below) ? below : (at[step] = {});
    }
    at[field.path[field.path.length - 1] ?? ""] = value;
  }
  return values;
}
