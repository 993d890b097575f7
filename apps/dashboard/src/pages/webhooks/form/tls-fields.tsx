import { Checkbox, Text, Textarea } from '@mantine/core';
import type { Schemas } from '../../../api/client.ts';
import type { ErrorOf } from '../../../parts/form-fields.ts';
import { absoluteTime } from '../../../parts/time-words.ts';
import { TLS_PARTS } from './tls-rules.ts';
import styles from '../webhooks.module.css';

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
export function TlsFields({ stored, errorOf }: { stored: ShownTls | null; errorOf: ErrorOf }) {
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
