// A field that proposes what is known; anything may be entered.

import { useId } from "react";

interface Props {
  title: string;
  name: string;
  value: string;
  known: readonly string[];
  change: (value: string) => void;
  required?: boolean;
  placeholder?: string;
}

export function Known({ title, name, value, known, change, required, placeholder }: Props) {
  const id = useId();
  return (
    <label>
      {title}
      <input
        name={name}
        value={value}
        required={required}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        list={known.length > 0 ? id : undefined}
        onChange={(e) => change(e.target.value)}
      />
      {known.length > 0 && (
        <datalist id={id}>
          {known.map((value) => (
            <option key={value}>{value}</option>
          ))}
        </datalist>
      )}
    </label>
  );
}
