import { Button, Group, NativeSelect, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { catalogueQuery, readOne } from '../../api/event-types.ts';
import { type Problem, toFailure } from '../../api/failure.ts';
import { newestMessage } from '../../api/messages.ts';
import { testFilter } from '../../api/webhooks.ts';
import { valueTo } from '../../parts/form-fields.ts';
import {
  exampleOf,
  filterText,
  problemOfJson,
  type TestedMessage,
  testOf,
} from './filter-rules.ts';
import styles from './webhooks.module.css';

interface FilterFieldProps {
  stored: Schemas['Webhook']['filter'];
  /** The app whose newest message a test can begin with; '' while it is not known. */
  appId: string;
  problems: readonly Problem[];
}

/** The conditions on messages, as JSON, with a test of them (docs/contract.md C27). */
export function FilterField({ stored, appId, problems }: FilterFieldProps) {
  const [filter, setFilter] = useState(filterText(stored));
  const wrong = problems.filter(({ path }) => /^filter(\.|$)/.test(path));
  const error = wrong.map(({ path, message }) => `${path} ${message}`).join('; ');
  const problem = problemOfJson(filter);
  return (
    <>
      <Textarea
        // The browser does not send a form with a problem.
        ref={(input) => input?.setCustomValidity(problem ?? '')}
        name="filter"
        label="Filter"
        description='Conditions that a message must meet, as JSON, such as {"payload": {"amount": {"$gte": 100}}}. Leave it empty to receive all messages of the event types'
        autosize
        minRows={2}
        maxRows={12}
        spellCheck={false}
        value={filter}
        error={problem ?? (error === '' ? undefined : error)}
        onChange={valueTo(setFilter)}
      />
      <FilterTest filter={filter} appId={appId} />
    </>
  );
}

const EXAMPLE: TestedMessage = { payload: '{}', eventType: '', tags: '' };

/** A message to test with: typed, the newest of the app, or the example of an event type. */
function useTest(filter: string, appId: string) {
  const [message, setMessage] = useState(EXAMPLE);
  const test = useMutation({ mutationFn: () => testFilter(testOf(filter, message)) });
  const newest = useMutation({
    mutationFn: () => newestMessage(appId),
    onSuccess: (found) => {
      if (found !== null) setMessage(found);
    },
  });
  const example = useMutation({
    mutationFn: (eventType: string) => readOne({ appId }, eventType),
    onSuccess: (type) => {
      setMessage(exampleOf(type));
    },
  });
  return { message, setMessage, test, newest, example };
}

function FilterTest({ filter, appId }: { filter: string; appId: string }) {
  const { message, setMessage, test, newest, example } = useTest(filter, appId);
  const isJson = problemOfJson(filter) === null && problemOfJson(message.payload) === null;
  const canTest = filter.trim() !== '' && isJson;
  return (
    <details className={styles.tls}>
      <summary>Test the filter</summary>
      <div className={styles.inner}>
        <ExampleSelect
          appId={appId}
          choose={(eventType) => {
            test.reset();
            example.mutate(eventType);
          }}
        />
        <MessageFields
          message={message}
          change={(changed) => {
            test.reset();
            setMessage({ ...message, ...changed });
          }}
          onEnter={() => {
            if (canTest) test.mutate();
          }}
        />
        <Group>
          <Step isDisabled={!canTest} isPending={test.isPending} take={test.mutate}>
            Test the filter
          </Step>
          <Step
            isDisabled={appId === ''}
            isPending={newest.isPending}
            take={() => {
              test.reset();
              newest.mutate();
            }}
          >
            Use the newest message
          </Step>
        </Group>
        <Result tested={test.data} error={test.error ?? newest.error ?? example.error} />
        {newest.data === null && <Said text="The app has no message with a payload yet." />}
      </div>
    </details>
  );
}

interface ExampleSelectProps {
  appId: string;
  choose: (eventType: string) => void;
}

/** Not there without a catalogue. */
function ExampleSelect({ appId, choose }: ExampleSelectProps) {
  const { data: types = [] } = useQuery(catalogueQuery(appId === '' ? null : { appId }));
  if (types.length === 0) return null;
  return (
    <NativeSelect
      label="Example to test with"
      data={[{ value: '', label: 'Choose an event type' }, ...types.map(({ name }) => name)]}
      onChange={valueTo((eventType) => {
        if (eventType !== '') choose(eventType);
      })}
    />
  );
}

interface StepProps {
  isDisabled: boolean;
  isPending: boolean;
  take: () => void;
  children: string;
}

const Step = ({ isDisabled, isPending, take, children }: StepProps) => (
  <Button
    variant="default"
    disabled={isDisabled}
    loading={isPending}
    onClick={() => {
      take();
    }}
  >
    {children}
  </Button>
);

interface MessageFieldsProps {
  message: TestedMessage;
  change: (changed: Partial<TestedMessage>) => void;
  onEnter: () => void;
}

/** They have no names, so that the form around them does not have their values. */
function MessageFields({ message, change, onEnter }: MessageFieldsProps) {
  // The form around it would be sent.
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    onEnter();
  };
  return (
    <>
      <Textarea
        label="Payload to test with"
        autosize
        minRows={2}
        maxRows={12}
        spellCheck={false}
        value={message.payload}
        error={problemOfJson(message.payload)}
        onChange={valueTo((payload) => {
          change({ payload });
        })}
      />
      <TextInput
        label="Its event type"
        value={message.eventType}
        onKeyDown={onKeyDown}
        onChange={valueTo((eventType) => {
          change({ eventType });
        })}
      />
      <TextInput
        label="Its tags, with commas between them"
        value={message.tags}
        onKeyDown={onKeyDown}
        onChange={valueTo((tags) => {
          change({ tags });
        })}
      />
    </>
  );
}

interface ResultProps {
  tested: Schemas['TestedFilter'] | undefined;
  error: Error | null;
}

function Result({ tested, error }: ResultProps) {
  if (error !== null) {
    const { message, problems } = toFailure(error);
    const details = problems.map(({ path, message: wrong }) => `${path} ${wrong}`);
    return (
      <Text size="sm" role="alert" className={styles.again}>
        {details.length === 0 ? message : details.join('; ')}
      </Text>
    );
  }
  if (!tested) return null;
  const { matches, failedAt, undecided } = tested;
  if (undecided) {
    return <Said text="The filter costs too much for this message, which therefore passes." />;
  }
  const failed = `The message does not pass: it does not meet ${failedAt ?? 'a condition'}.`;
  return <Said text={matches ? 'The message passes the filter.' : failed} />;
}

const Said = ({ text }: { text: string }) => (
  <Text size="sm" role="status">
    {text}
  </Text>
);
