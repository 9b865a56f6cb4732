// The notice of whoever runs the control plane (`ui.bannercontent`).

import { useState } from "react";
import type { AuthSettings } from "../api/client";
import { safeUrl } from "../model/url";

const HIDDEN = "tiphys:banner";

/** Storage may be switched off in the browser. */
function stored(): string {
  try {
    return localStorage.getItem(HIDDEN) ?? "";
  } catch {
    return "";
  }
}

export function Banner({ settings }: { settings: AuthSettings }) {
  const { uiBannerContent: text, uiBannerURL, uiBannerPermanent } = settings;
  const [hidden, setHidden] = useState(stored);
  // Another text is shown again.
  if (!text || (!uiBannerPermanent && hidden === text)) return null;
  const url = safeUrl(uiBannerURL);
  const hide = () => {
    setHidden(text);
    try {
      localStorage.setItem(HIDDEN, text);
    } catch {
      // It is there again after a reload.
    }
  };
  return (
    <div className="banner" role="region" aria-label="Notice">
      {url ? (
        <a href={url} target="_blank" rel="noreferrer">
          {text}
        </a>
      ) : (
        <span>{text}</span>
      )}
      {!uiBannerPermanent && (
        <button type="button" className="small" onClick={hide}>
          Hide it
        </button>
      )}
    </div>
  );
}
