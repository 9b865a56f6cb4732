import { useToast } from "./shell";

/** Copies a text to the clipboard. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const toast = useToast();
  // There is no clipboard on pages that came over plain HTTP from another host.
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast("Copied");
    } catch (e) {
      toast(`The browser does not let the page copy: ${e instanceof Error ? e.message : String(e)}`, true);
    }
  };
  return (
    <button type="button" className="small" onClick={() => void copy()}>
      {label}
    </button>
  );
}
