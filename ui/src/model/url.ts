// Addresses that come from outside. Only what a browser opens as a page may become a link.

/** The address if it is http or https, else undefined: never `javascript:`, `data:` or the like. */
export function safeUrl(text: string | undefined): string | undefined {
  if (!text) return undefined;
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? withoutUser(url) : undefined;
  } catch {
    return undefined;
  }
}

/** A link must not carry a user or password that a repository address may contain. */
function withoutUser(url: URL): string {
  url.username = "";
  url.password = "";
  return url.href;
}

/** A repository address as people read it: `git.example.org/team/shop`. */
export function shortRepo(text: string): string {
  const safe = safeUrl(text);
  if (safe) {
    const { host, pathname } = new URL(safe);
    return (host + pathname).replace(/\/+$/, "").replace(/\.git$/, "");
  }
  // Where a local repository lies says little; its name says which it is.
  if (text.startsWith("file://") || text.startsWith("/")) return `…/${text.replace(/\/+$/, "").split("/").pop()}`.replace(/\.git$/, "");
  return text.replace(/^ssh:\/\//, "").replace(/^[^@/]+@/, "").replace(/\.git$/, "");
}
