import { Checkbox, NativeSelect, NumberInput, Text, Textarea, TextInput } from '@mantine/core';
import { MASK, WEBHOOK_RULES } from '@posthorn/client/rules';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import type { Problem } from '../../api/failure.ts';
import { errorIn, type ErrorOf, valueTo } from '../../parts/form-fields.ts';
import { absoluteTime } from '../../parts/time-words.ts';
import { useRights } from '../../session/session-context.ts';
import { MetadataInput, UidInput } from '../own-fields.tsx';
import { Authentication, OwnSecretInput } from './auth-fields.tsx';
import { EventTypesField } from './event-types-field.tsx';
import { FilterField } from './filter-field.tsx';
import { isOtherServer } from './auth-rules.ts';
import {
  hasSvix,
  headersText,
  NEW_WEBHOOK,
  TLS_PARTS,
  type WebhookFields,
} from './webhook-fields.ts';
import styles from './webhooks.module.css';

interface FieldsProps {
  /** Null for a new webhook. */
  stored: Schemas['WebhookWithAuth'] | null;
  /** The app of a new webhook; '' while none is chosen. */
  appId?: string;
  /** Chosen for a new webhook before. */
  eventType?: string | undefined;
  problems: readonly Problem[];
}

/** The fields of a webhook, with what is wrong with each. */
export function WebhookFormFields({ stored, appId = '', eventType, problems }: FieldsProps) {
  const fields = stored ?? NEW_WEBHOOK;
  const ownerId = stored?.appId ?? appId;
  const eventTypes = eventType === undefined ? fields.eventTypes : [eventType];
  const [url, setUrl] = useState(fields.url);
  const isMoved = stored !== null && isOtherServer(url, stored.url);
  const errorOf: ErrorOf = (name) => errorIn(problems, name);
  return (
    <>
      <TextInput
        name="url"
        type="url"
        label="URL"
        description="Where messages are sent with POST"
        placeholder="https://shop.example/webhooks"
        required
        defaultValue={fields.url}
        error={errorOf('url')}
        onChange={valueTo(setUrl)}
      />
      <TextInput name="name" label="Name" defaultValue={fields.name} error={errorOf('name')} />
      <EventTypesField stored={eventTypes} appId={ownerId} error={errorOf('eventTypes')} />
      <FilterField stored={fields.filter} appId={ownerId} problems={problems} />
      <UidInput kind="webhook" stored={fields} errorOf={errorOf} />
      <Authentication stored={stored?.authMethod ?? null} isMoved={isMoved} errorOf={errorOf} />
      <SignatureInputs isNew={stored === null} fields={fields} errorOf={errorOf} />
      <LimitFields fields={fields} isMoved={isMoved} errorOf={errorOf} />
      <EndingFields fields={fields} errorOf={errorOf} />
      <NativeSelect
        name="ordering"
        label="Order of deliveries"
        description="Of messages that have the same ordering key"
        data={ORDERINGS}
        defaultValue={fields.ordering}
        error={errorOf('ordering')}
      />
      <TlsFields stored={stored?.tls ?? null} errorOf={errorOf} />
      <MetadataInput stored={fields} errorOf={errorOf} />
      <Checkbox
        name="isEnabled"
        label="Enabled"
        description="Disabling cancels what is pending. Later messages are not delivered here."
        defaultChecked={!fields.disabled}
      />
    </>
  );
}

const ORDERINGS: { value: WebhookFields['ordering']; label: string }[] = [
  { value: 'none', label: 'None: each is delivered as soon as possible' },
  { value: 'block', label: 'One after the other, and an exhausted one blocks its key' },
  { value: 'skip', label: 'One after the other, and on behind an exhausted one' },
];

interface SignatureInputsProps {
  isNew: boolean;
  fields: WebhookFields;
  errorOf: ErrorOf;
}

/** What verifies deliveries, whatever the method. Later only a rotation changes the secret. */
function SignatureInputs({ isNew, fields, errorOf }: SignatureInputsProps) {
  return (
    <>
      {isNew && <OwnSecretInput error={errorOf('secret')} />}
      <Checkbox
        name="hasSvixHeaders"
        label="Also send the headers of Svix"
        description="svix-id, svix-timestamp and svix-signature, for an endpoint that verifies those"
        defaultChecked={hasSvix(fields)}
        error={errorOf('signatureHeaders')}
      />
    </>
  );
}

interface LimitFieldsProps {
  fields: WebhookFields;
  isMoved: boolean;
  errorOf: ErrorOf;
}

function LimitFields({ fields, isMoved, errorOf }: LimitFieldsProps) {
  const { canSeeSecrets } = useRights();
  const { rateLimitPerSecond, timeoutSeconds, customHeaders } = fields;
  const hasMask = customHeaders.some(({ value }) => value === MASK);
  const masked = isMoved && !canSeeSecrets ? MOVED_MASK : KEPT_MASK;
  return (
    <>
      <NumberInput
        name="rateLimitPerSecond"
        label="Most attempts per second"
        description="Empty for no limit"
        {...rangeOf('rateLimitPerSecond')}
        hideControls
        defaultValue={rateLimitPerSecond ?? ''}
        error={errorOf('rateLimitPerSecond')}
      />
      <NumberInput
        name="timeoutSeconds"
        label="Timeout of an attempt, in seconds"
        description="Empty for the timeout of the service"
        {...rangeOf('timeoutSeconds')}
        hideControls
        defaultValue={timeoutSeconds ?? ''}
        error={errorOf('timeoutSeconds')}
      />
      <Textarea
        name="customHeaders"
        label="Headers to add, one on each line"
        description={hasMask ? <>Name: value. {masked}</> : 'Name: value'}
        rows={2}
        defaultValue={headersText(customHeaders)}
        error={errorOf('customHeaders')}
      />
    </>
  );
}

type NumberField = 'rateLimitPerSecond' | 'timeoutSeconds' | 'maxAttempts';

function rangeOf(field: NumberField): { min: number; max: number } {
  const { min, max } = WEBHOOK_RULES[field];
  return { min, max };
}

const ALWAYS_RETRIED = new Intl.ListFormat('en-GB').format(
  WEBHOOK_RULES.finalStatusCodes.entry.refused.map(String),
);

/** What ends deliveries before their schedule does. */
function EndingFields({ fields, errorOf }: Omit<LimitFieldsProps, 'isMoved'>) {
  const { maxAttempts, finalStatusCodes, onGone, obeyControlHeaders } = fields;
  const range = rangeOf('maxAttempts');
  return (
    <>
      <NumberInput
        name="maxAttempts"
        label="Attempts of a delivery"
        description={`The first ones of the schedule, ${range.min} to ${range.max}. Empty for all`}
        {...range}
        hideControls
        defaultValue={maxAttempts ?? ''}
        error={errorOf('maxAttempts')}
      />
      <TextInput
        name="finalStatusCodes"
        label="Statuses after which a delivery is not tried again"
        description={`Such as 400, 422. Not ${ALWAYS_RETRIED}, which are always tried again`}
        defaultValue={(finalStatusCodes ?? []).join(', ')}
        error={errorOf('finalStatusCodes')}
      />
      <Checkbox
        name="disablesWhenGone"
        label="Disable this webhook when its endpoint answers 410"
        defaultChecked={onGone === 'disable'}
        error={errorOf('onGone')}
      />
      <Checkbox
        name="obeyControlHeaders"
        label="Let the endpoint control deliveries"
        description="By the response header webhook-delivery: disable, or abort-message"
        defaultChecked={obeyControlHeaders}
        error={errorOf('obeyControlHeaders')}
      />
    </>
  );
}

const KEPT_MASK = `${MASK} keeps the value that is not shown`;
/** See docs/contract.md C20.6. */
const MOVED_MASK = (
  <span className={styles.again}>
    Give the value again where it says {MASK}, or remove the header: the stored one would go to
    another server, and you may not see it
  </span>
);

type ShownTls = Schemas['ShownTls'];

const PARTS: Record<(typeof TLS_PARTS)[number], { label: string; description: string }> = {
  certificate: {
    label: 'Client certificate',
    description: 'What proves deliveries to the endpoint, then the authorities between',
  },
  key: {
    label: 'Private key of the client certificate',
    description: 'Not encrypted. It is never shown again',
  },
  ca: {
    label: 'Private CA',
    description: 'The only authorities that may have issued the certificate of the endpoint',
  },
};

/** TLS to the endpoint. Few need it, so it is closed until one of its fields is wrong. */
function TlsFields({ stored, errorOf }: { stored: ShownTls | null; errorOf: ErrorOf }) {
  const isWrong = TLS_PARTS.some((part) => errorOf(`tls.${part}`) !== undefined);
  return (
    <details className={styles.tls} open={isWrong}>
      <summary>TLS: client certificate and private CA</summary>
      <div className={styles.inner}>
        {stored !== null && <StoredTls {...stored} />}
        {TLS_PARTS.map((part) => (
          <Textarea
            key={part}
            name={`tls.${part}`}
            label={PARTS[part].label}
            description={`${PARTS[part].description}. PEM`}
            rows={3}
            autoComplete="off"
            spellCheck={false}
            error={errorOf(`tls.${part}`)}
          />
        ))}
      </div>
    </details>
  );
}

function StoredTls({ certificate, ca }: ShownTls) {
  return (
    <>
      {certificate.slice(0, 1).map((own) => (
        <Known key={own.fingerprint256} what="Client certificate" {...own} />
      ))}
      {ca.map((authority) => (
        <Known key={authority.fingerprint256} what="Private CA" {...authority} />
      ))}
      <Text size="sm">
        Leave all fields empty to keep the stored ones. What you give replaces all of them, so give
        the private key again with its certificate.
      </Text>
      <Checkbox name="isTlsRemoved" label="Remove the TLS settings" />
    </>
  );
}

interface KnownProps {
  what: string;
  subject: string;
  notAfter: string;
}

function Known({ what, subject, notAfter }: KnownProps) {
  return (
    <Text size="sm" className={styles.subject}>
      {what}: {subject}, valid until {absoluteTime(Date.parse(notAfter))}
    </Text>
  );
}
