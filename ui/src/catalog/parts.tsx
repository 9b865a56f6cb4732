// Small parts of the catalogue.

import { blocks, type Span } from "./markdown";

/** The picture of a chart, or a neutral one. It is a PNG that the server drew; nothing is loaded from elsewhere. */
export function Icon({ icon, name }: { icon: string | undefined; name: string }) {
  if (icon) return <img className="chart-icon" src={`data:image/png;base64,${icon}`} alt="" />;
  return (
    <span className="chart-icon chart-letter" aria-hidden="true">
      {name.slice(0, 1).toUpperCase()}
    </span>
  );
}

function Spans({ spans }: { spans: Span[] }) {
  return spans.map((span, i) => {
    if (span.kind === "code") return <code key={i}>{span.text}</code>;
    if (span.kind === "strong") return <strong key={i}>{span.text}</strong>;
    if (span.kind === "em") return <em key={i}>{span.text}</em>;
    if (span.kind === "link")
      return (
        <a key={i} href={span.url} target="_blank" rel="noreferrer nofollow">
          {span.text}
        </a>
      );
    return <span key={i}>{span.text}</span>;
  });
}

/** A README. Its text becomes elements of ours, never HTML of its own. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className="readme">
      {blocks(text).map((block, i) => {
        switch (block.kind) {
          case "heading": {
            // The page has the first level.
            const Tag = `h${Math.min(6, block.level + 1)}` as "h2";
            return (
              <Tag key={i}>
                <Spans spans={block.spans} />
              </Tag>
            );
          }
          case "code":
            return <pre key={i}>{block.text}</pre>;
          case "list": {
            const items = block.items.map((item, j) => (
              <li key={j}>
                <Spans spans={item} />
              </li>
            ));
            return block.ordered ? <ol key={i}>{items}</ol> : <ul key={i}>{items}</ul>;
          }
          case "table":
            return (
              <table key={i}>
                <tbody>
                  {block.rows.map((row, j) => (
                    <tr key={j}>
                      {row.map((cell, k) => (
                        <td key={k}>
                          <Spans spans={cell} />
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            );
          case "rule":
            return <hr key={i} />;
          case "paragraph":
            return (
              <p key={i}>
                <Spans spans={block.spans} />
              </p>
            );
        }
      })}
    </div>
  );
}

/** Everything that would be applied, folded away as long as the difference says what matters. */
export function Manifests({ text, open }: { text: string | undefined; open: boolean }) {
  return (
    <details open={open} data-manifests>
      <summary>All manifests</summary>
      <pre tabIndex={0} aria-label="All manifests">
        {text || "None."}
      </pre>
    </details>
  );
}

/** A unified difference, line by line. */
export function Unified({ text }: { text: string }) {
  const kind = (line: string) => (line.startsWith("===") ? "head" : line.startsWith("@@") ? "place" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same");
  return (
    <pre className="unified" tabIndex={0} aria-label="Difference of the manifests">
      {text.replace(/\n$/, "").split("\n").map((line, i) => (
        <span key={i} className={`line-${kind(line)}`}>
          {`${line}\n`}
        </span>
      ))}
    </pre>
  );
}
