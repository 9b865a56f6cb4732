// The focus stays on its item (`data-item`) when a redraw puts that elsewhere: the browser takes it from an element that is removed, and the keyboard would begin anew at the top of the page.

import { type FocusEvent, type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";

const CONTROLS = "a[href], button, input, select, textarea";

interface Held {
  item: string;
  /** Which of its controls. */
  at: number;
}

function controls(item: HTMLElement): HTMLElement[] {
  const below = [...item.querySelectorAll<HTMLElement>(CONTROLS)];
  return item.matches(CONTROLS) ? [item, ...below] : below;
}

interface KeptFocus<E extends HTMLElement> {
  box: RefObject<E | null>;
  /** The item that has the focus, which must be drawn. */
  held: string | undefined;
  /** For the element that has all items. */
  on: { onFocus: (e: FocusEvent) => void; onBlur: (e: FocusEvent) => void };
}

export function useKeptFocus<E extends HTMLElement>(): KeptFocus<E> {
  const box = useRef<E>(null);
  const [held, setHeld] = useState<Held>();
  useLayoutEffect(() => {
    // Who went elsewhere stays there.
    if (!held || (document.activeElement && document.activeElement !== document.body)) return;
    const items = [...(box.current?.querySelectorAll<HTMLElement>("[data-item]") ?? [])];
    const item = items.find((one) => one.dataset["item"] === held.item);
    const all = item ? controls(item) : [];
    // A menu that was open in it is gone, but not its button.
    (all[held.at] ?? all.at(-1))?.focus({ preventScroll: true });
  });
  const onFocus = useCallback((e: FocusEvent) => {
    const item = e.target.closest<HTMLElement>("[data-item]");
    const name = item?.dataset["item"];
    if (!item || name === undefined) return setHeld(undefined);
    const at = controls(item).indexOf(e.target as HTMLElement);
    setHeld((now) => (now?.item === name && now.at === at ? now : { item: name, at }));
  }, []);
  // React tells nothing of what a redraw removes. A window that loses the focus keeps its element.
  const onBlur = useCallback((e: FocusEvent) => document.activeElement !== e.target && setHeld(undefined), []);
  return { box, held: held?.item, on: { onFocus, onBlur } };
}
