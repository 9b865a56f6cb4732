// Prints JSON values as YAML, for reading. Keys of an object keep the server's order.

const PLAIN = /^[A-Za-z_/.$][\w./@$+=,()<>~^;-]*( [\w./@$+=,()<>~^;-]+)*$/;
/** What YAML 1.1 reads as another type. `.5`, `.1e3` and `.1_0` are numbers. */
const SPECIAL = /^(?:(true|false|yes|no|on|off|null|y|n|~|\.inf|\.nan)$|\.[\d_])/i;

function text(value: string): string {
  return PLAIN.test(value) && !SPECIAL.test(value) ? value : JSON.stringify(value);
}

const KEY = /^[A-Za-z_.][\w./-]*$/;

const key = (name: string) => (KEY.test(name) && !SPECIAL.test(name) ? name : JSON.stringify(name));

const isEmpty = (value: object) => Object.keys(value).length === 0;

function block(value: string, indent: string): string[] {
  const keep = value.endsWith("\n\n") ? "|+" : value.endsWith("\n") ? "|" : "|-";
  const lines = value.replace(/\n$/, "").split("\n");
  return [keep, ...lines.map((line) => (line ? indent + line : ""))];
}

/** The lines of a value; the first belongs behind the key or dash before it, and is empty when nothing does. */
function print(value: unknown, indent: string): string[] {
  if (typeof value === "string") {
    const fits = value.includes("\n") && !/^\s|\r|\t|[^\P{C}\n]/u.test(value);
    return fits ? block(value, indent) : [text(value)];
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return ["[]"];
    const lines = value.flatMap((item: unknown) => {
      const [first = "", ...rest] = print(item, `${indent}  `);
      return first ? [`${indent}- ${first}`, ...rest] : [`${indent}- ${(rest[0] ?? "").trimStart()}`, ...rest.slice(1)];
    });
    return ["", ...lines];
  }
  if (typeof value === "object" && value !== null) {
    if (isEmpty(value)) return ["{}"];
    const lines = [""];
    for (const [name, item] of Object.entries(value)) {
      const [first = "", ...rest] = print(item, Array.isArray(item) ? indent : `${indent}  `);
      lines.push(first ? `${indent}${key(name)}: ${first}` : `${indent}${key(name)}:`, ...rest);
    }
    return lines;
  }
  return [JSON.stringify(value) ?? "null"];
}

export function toYaml(value: unknown): string {
  const [first = "", ...rest] = print(value, "");
  return (first ? [first, ...rest] : rest).join("\n");
}

interface Meta {
  metadata?: { managedFields?: unknown };
}

/** A manifest of the API as YAML lines. Field ownership is left out: it is long, and nobody reads it here. */
export function manifestYaml(json: string | undefined): string {
  if (!json || json === "null") return "";
  try {
    const value = JSON.parse(json) as Meta | null;
    if (value && typeof value === "object" && value.metadata) delete value.metadata.managedFields;
    return value === null ? "" : toYaml(value);
  } catch {
    return json;
  }
}
