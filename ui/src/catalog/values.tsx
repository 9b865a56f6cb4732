// Where values are entered: a form, if the chart's schema describes one, or YAML.

import { useMemo, useState } from "react";
import { toYaml } from "../model/yaml";
import { type Answers, type Field, fieldsOf, nameOf, valuesOf } from "./schema";

export function ValuesInput({ schema, values, onChange }: { schema: string | undefined; values: string; onChange: (values: string) => void }) {
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [asForm, setAsForm] = useState(fields.some((field) => field.kind !== "note"));
  const [answers, setAnswers] = useState<Answers>({});
  const answer = (field: Field, value: string | undefined) => {
    const { [nameOf(field)]: _, ...others } = answers;
    const next = value === undefined ? others : { ...others, [nameOf(field)]: value };
    setAnswers(next);
    const entered = valuesOf(fields, next);
    onChange(Object.keys(entered).length > 0 ? `${toYaml(entered)}\n` : "");
  };
  if (!asForm)
    return (
      <label>
        Values that differ from the defaults
        <textarea name="values" rows={10} spellCheck={false} value={values} onChange={(e) => onChange(e.target.value)} />
      </label>
    );
  return (
    <fieldset className="values-form">
      <legend>Values</legend>
      {fields.map((field) => (
        <Input key={nameOf(field)} field={field} answer={answers[nameOf(field)]} onAnswer={(value) => answer(field, value)} />
      ))}
      {/* What was typed there could not be read back into the form. */}
      <button type="button" className="quiet" onClick={() => setAsForm(false)}>
        Edit as YAML
      </button>
    </fieldset>
  );
}

function Input({ field, answer, onAnswer }: { field: Field; answer: string | undefined; onAnswer: (value: string | undefined) => void }) {
  if (field.kind === "note")
    return (
      <p className="notice tone-warn">
        {field.title}: {field.description}
      </p>
    );
  const name = field.path.join(".");
  const choices = field.kind === "boolean" ? ["true", "false"] : field.choices;
  const isNumber = field.kind === "number" || field.kind === "integer";
  return (
    <label>
      {field.title}
      {choices.length > 0 ? (
        <select name={name} value={answer ?? ""} onChange={(e) => onAnswer(e.target.value || undefined)}>
          <option value="">{field.fallback ? `default: ${field.fallback}` : "default"}</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input
          name={name}
          type={isNumber ? "number" : "text"}
          step={field.kind === "integer" ? 1 : "any"}
          value={answer ?? ""}
          placeholder={field.fallback}
          autoComplete="off"
          spellCheck={false}
          onChange={(e) => onAnswer(isNumber && e.target.value === "" ? undefined : e.target.value)}
        />
      )}
      {field.description && <small>{field.description}</small>}
    </label>
  );
}
