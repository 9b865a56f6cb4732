// A button with a menu: arrows, Home, End and letters move in it, Escape leads back. What is in it is made when it is opened.

import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";

interface Place {
  top: number;
  right: number;
}

interface Props {
  label: string;
  className?: string;
  children: () => ReactNode;
}

/** Where a key leads among these titles; undefined: it means nothing here. */
export function itemAfter(key: string, at: number, titles: readonly string[]): number | undefined {
  const count = titles.length;
  if (count === 0) return undefined;
  if (key === "ArrowDown") return (at + 1) % count;
  if (key === "ArrowUp") return at <= 0 ? count - 1 : at - 1;
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  if (key.length !== 1 || key === " ") return undefined;
  const order = titles.map((_, n) => (at + 1 + n) % count);
  return order.find((n) => titles[n]?.toLowerCase().startsWith(key.toLowerCase()));
}

export function MenuButton({ label, className = "", children }: Props) {
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  const id = useId();
  const [place, setPlace] = useState<Place>();
  const where = (): Place | undefined => {
    const box = button.current?.getBoundingClientRect();
    return box && { top: box.bottom + 2, right: Math.max(8, document.documentElement.clientWidth - box.right) };
  };
  const open = () => setPlace(where());
  const moved = () => {
    const now = where();
    return !now || !place || Math.abs(now.top - place.top) + Math.abs(now.right - place.right) > 2;
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={`quiet menu-button ${className}`}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={place !== undefined}
        aria-controls={place && id}
        // The browser closes an open menu before the click is told.
        onPointerDown={() => (wasOpen.current = place !== undefined)}
        onClick={() => {
          if (!wasOpen.current) open();
          wasOpen.current = false;
        }}
      >
        <span aria-hidden="true">⋮</span>
      </button>
      {place && (
        <Items id={id} label={label} place={place} onClose={() => setPlace(undefined)} back={() => button.current?.focus()} moved={moved}>
          {children()}
        </Items>
      )}
    </>
  );
}

interface ItemsProps {
  id: string;
  label: string;
  place: Place;
  children: ReactNode;
  onClose: () => void;
  back: () => void;
  /** Whether the button is elsewhere by now. */
  moved: () => boolean;
}

function Items({ id, label, place, children, onClose, back, moved }: ItemsProps) {
  const menu = useRef<HTMLDivElement>(null);
  const items = () => [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not([disabled])") ?? [])];
  useEffect(() => {
    const box = menu.current;
    if (!box) return;
    if (!box.matches(":popover-open")) box.showPopover();
    // It grows when what the server was asked for has come.
    const fit = () => {
      const { bottom, height } = box.getBoundingClientRect();
      if (bottom > window.innerHeight - 8) box.style.top = `${Math.max(8, window.innerHeight - height - 8)}px`;
    };
    const observer = new ResizeObserver(fit);
    observer.observe(box);
    items()[0]?.focus({ preventScroll: true });
    // It would stay where it is while its button moves away.
    const scrolled = () => moved() && onClose();
    window.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => {
      observer.disconnect();
      window.removeEventListener("scroll", scrolled, { capture: true });
    };
  }, []);
  const press = (e: KeyboardEvent) => {
    // Neither the page nor a panel may take its keys.
    e.stopPropagation();
    if (e.key === "Escape" || e.key === "Tab") {
      e.preventDefault();
      onClose();
      back();
      return;
    }
    const all = items();
    const next = itemAfter(e.key, all.findIndex((item) => item === document.activeElement), all.map((item) => item.textContent ?? ""));
    if (next === undefined) return;
    e.preventDefault();
    all[next]?.focus();
  };
  const chosen = (e: React.MouseEvent) => {
    if (!(e.target instanceof Element) || !e.target.closest("[role=menuitem]")) return;
    onClose();
    back();
  };
  return (
    <div ref={menu} id={id} popover="auto" role="menu" aria-label={label} className="menu" style={place} onKeyDown={press} onClick={chosen} onToggle={(e) => e.newState === "closed" && onClose()}>
      {children}
    </div>
  );
}

/** The menu is closed, and the focus back at its button, when `act` runs. */
export function Item({ name, danger, act, children }: { name?: string; danger?: boolean; act: () => void; children: ReactNode }) {
  return (
    <button type="button" role="menuitem" tabIndex={-1} data-item={name} className={danger ? "menu-danger" : undefined} onClick={() => queueMicrotask(act)}>
      {children}
    </button>
  );
}
