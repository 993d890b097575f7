import { Button, Group, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { makePortalLink, revokePortalLink } from '../../api/portal.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Copyable } from '../../parts/copy/copyable.tsx';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { When } from '../../parts/time/when.tsx';
import { LinkFields } from './portal-link-form.tsx';
import { previewOf } from './portal-link-preview.ts';
import { bodyOf, problemsOf, type LinkDraft } from './portal-link-rules.ts';

const FIRST: LinkDraft = {
  capabilities: ['view', 'resend'],
  minutes: '60',
  path: '',
  name: '',
  logoUrl: '',
  primaryColor: '',
  colorScheme: 'auto',
};

/** Makes a link that opens the portal of an app, for a customer of the platform. */
export function PortalLink({ appId, appName }: { appId: string; appName: string }) {
  const [draft, setDraft] = useState(FIRST);
  const problems = problemsOf(draft);
  const isRight = Object.keys(problems).length === 0;
  const link = useMutation({ mutationFn: () => makePortalLink(appId, bodyOf(draft)) });
  return (
    <Section title="Portal">
      <Text size="sm">
        A link opens the webhooks, messages and attempts of this app, and nothing else, for whoever
        has it. It works once, and ends with the API key of your session: where a sign-in link began
        the session, that is when you sign out.
      </Text>
      <LinkFields
        draft={draft}
        problems={problems}
        change={(changes) => {
          setDraft({ ...draft, ...changes });
        }}
      />
      {isRight && (
        <Text size="sm" role="status">
          {previewOf(draft, appName)}
        </Text>
      )}
      <Group>
        <Button
          variant="default"
          loading={link.isPending}
          disabled={!isRight}
          onClick={() => {
            link.mutate();
          }}
        >
          Make a portal link
        </Button>
      </Group>
      {link.error !== null && <Failed error={link.error} what="make the link" />}
      {link.data !== undefined && <MadeLink key={link.data.id} link={link.data} />}
    </Section>
  );
}

function MadeLink({ link: { id, url, expiresAt } }: { link: Schemas['PortalLink'] }) {
  const [isRevoked, setRevoked] = useState(false);
  if (isRevoked) return <Text role="status">The link is revoked: it opens nothing any more.</Text>;
  return (
    <>
      <div role="status">
        <Copyable text={url} name="portal link" />
        <Text size="sm">
          It expires <When at={expiresAt} />, and is not shown again.
        </Text>
      </div>
      <Group>
        <Confirm
          action="Revoke this link"
          consequence="The link will open nothing any more, and a visit that it began ends within two seconds."
          perform={() => revokePortalLink(id)}
          onDone={() => {
            setRevoked(true);
          }}
        />
      </Group>
    </>
  );
}
