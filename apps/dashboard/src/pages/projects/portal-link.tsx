import { Button, Checkbox, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { makePortalLink } from '../../api/portal.ts';
import type { Capability } from '../../api/session.ts';
import { Copyable } from '../../parts/copy/copyable.tsx';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { When } from '../../parts/time/when.tsx';
import { valueTo } from '../../parts/value-to.ts';

const CAPABILITIES = [
  { value: 'view', label: 'See webhooks, messages and attempts' },
  { value: 'manage', label: 'Create, change, test and delete webhooks' },
  { value: 'secrets', label: 'See secrets' },
  { value: 'resend', label: 'Send failed deliveries again' },
];

const LIFETIMES = [
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
];

/** Makes a link that opens the portal of an app, for a customer of the platform. */
export function PortalLink({ appId }: { appId: string }) {
  const [capabilities, setCapabilities] = useState<string[]>(['view', 'resend']);
  const [seconds, setSeconds] = useState('3600');
  const link = useMutation({
    mutationFn: () =>
      makePortalLink(appId, {
        expiresInSeconds: Number(seconds),
        capabilities: capabilities as Capability[],
      }),
  });
  return (
    <Section title="Portal">
      <Text size="sm">
        A link opens the webhooks, messages and attempts of this app, and nothing else, for whoever
        has it. It works once.
      </Text>
      <Checkbox.Group label="Whoever opens it may" value={capabilities} onChange={setCapabilities}>
        <Stack gap="xs" mt="xs">
          {CAPABILITIES.map(({ value, label }) => (
            <Checkbox key={value} value={value} label={label} />
          ))}
        </Stack>
      </Checkbox.Group>
      <Group align="end">
        <NativeSelect label="For" data={LIFETIMES} value={seconds} onChange={valueTo(setSeconds)} />
        <Button
          variant="default"
          loading={link.isPending}
          disabled={capabilities.length === 0}
          onClick={() => {
            link.mutate();
          }}
        >
          Make a portal link
        </Button>
      </Group>
      {link.error !== null && <Failed error={link.error} what="make the link" />}
      {link.data !== undefined && <MadeLink {...link.data} />}
    </Section>
  );
}

function MadeLink({ url, expiresAt }: { url: string; expiresAt: string }) {
  return (
    <div role="status">
      <Copyable text={url} name="portal link" />
      <Text size="sm">
        It expires <When at={expiresAt} />, and is not shown again.
      </Text>
    </div>
  );
}
