import { Checkbox, Text, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { catalogueQuery, type ListedEventType } from '../../api/event-types.ts';
import { linesOf, valueTo } from '../../parts/form-fields.ts';
import { grouped, isFound, selectorOf, toggled, wildcardsOf } from '../event-types/catalogue.ts';
import styles from '../event-types/event-types.module.css';

interface EventTypesFieldProps {
  stored: readonly string[];
  /** The app whose catalogue is offered; '' while it is not known. */
  appId: string;
  error: string | undefined;
}

/** The event types of a webhook: typed, and chosen from the catalogue where there is one. */
export function EventTypesField({ stored, appId, error }: EventTypesFieldProps) {
  const [text, setText] = useState(stored.join('\n'));
  const { data: types = [] } = useQuery(catalogueQuery(appId === '' ? null : { appId }));
  const lines = linesOf(text);
  return (
    <>
      <Textarea
        name="eventTypes"
        label="Event types, one on each line"
        description="order.* selects all types that begin with order. and also future ones. Leave it empty to receive all messages of the app"
        rows={3}
        value={text}
        error={error}
        onChange={valueTo(setText)}
      />
      {types.length > 0 && (
        <Picker
          types={types}
          entries={lines}
          toggle={(entry) => {
            setText(toggled(lines, entry).join('\n'));
          }}
        />
      )}
    </>
  );
}

interface PickerProps {
  types: readonly ListedEventType[];
  entries: readonly string[];
  toggle: (entry: string) => void;
}

/** Its fields have no names, so that the form around them does not have their values. */
function Picker({ types, entries, toggle }: PickerProps) {
  const [find, setFind] = useState('');
  const found = types.filter((type) => isFound(type, find));
  return (
    <>
      <TextInput
        label="Choose from the catalogue"
        placeholder="Find by name, group or description"
        value={find}
        onChange={valueTo(setFind)}
        onKeyDown={(event) => {
          // The form around it would be sent.
          if (event.key === 'Enter') event.preventDefault();
        }}
      />
      <div className={styles.picker} role="group" aria-label="Catalogue" tabIndex={0}>
        {found.length === 0 && <Text size="sm">No event type has this.</Text>}
        {grouped(found).map(({ name, types: ofGroup }) => (
          <fieldset key={name} className={styles.picked}>
            <legend>{name}</legend>
            {wildcardsOf(ofGroup.map((type) => type.name)).map((wildcard) => (
              <Choice
                key={wildcard}
                entry={wildcard}
                words={`also future types below ${wildcard.slice(0, -1)}`}
                entries={entries}
                toggle={toggle}
              />
            ))}
            {ofGroup.map((type) => (
              <Choice
                key={type.name}
                entry={type.name}
                words={wordsOf(type)}
                entries={entries}
                toggle={toggle}
              />
            ))}
          </fieldset>
        ))}
      </div>
    </>
  );
}

const wordsOf = ({ deprecated, description }: ListedEventType): string =>
  [...(deprecated ? ['deprecated'] : []), firstLine(description)].filter(Boolean).join(': ');

const MOST_CHARS = 120;

function firstLine(text: string): string {
  const [line = ''] = text.split('\n');
  return line.length > MOST_CHARS ? `${line.slice(0, MOST_CHARS)}…` : line;
}

interface ChoiceProps extends Pick<PickerProps, 'entries' | 'toggle'> {
  entry: string;
  words: string;
}

/** A wider wildcard selects it too: then there is nothing to choose. */
function Choice({ entry, words, entries, toggle }: ChoiceProps) {
  const selector = selectorOf(entries, entry);
  const isWider = selector !== undefined && selector !== entry;
  return (
    <Checkbox
      label={entry}
      description={isWider ? `selected by ${selector}` : words}
      checked={selector !== undefined}
      disabled={isWider}
      onChange={() => {
        toggle(entry);
      }}
    />
  );
}
