import { Button, Group, Text } from '@mantine/core';
import { useMutation, type UseMutationResult, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/client.ts';
import { makePortalLink } from '../../api/projects.ts';
import { Section } from '../../parts/page.tsx';
import { Failed } from '../../parts/states.tsx';
import { Copyable, When } from '../../parts/values.tsx';
import { LinkFields } from './portal-link-form.tsx';
import { previewOf } from './portal-link-preview.ts';
import { bodyOf, type LinkDraft, problemsOf } from './portal-link-rules.ts';
import { PortalLinks } from './portal-links.tsx';

const FIRST: LinkDraft = {
  capabilities: ['view', 'resend'],
  minutes: '60',
  path: '',
  name: '',
  logoUrl: '',
  primaryColor: '',
  colorScheme: 'auto',
};

/** Makes links that open the portal of an app, for customers of the platform, and revokes them. */
export function Portal({ appId, appName }: { appId: string; appName: string }) {
  const client = useQueryClient();
  const made = useMutation({
    mutationFn: (draft: LinkDraft) => makePortalLink(appId, bodyOf(draft)),
    onSuccess: () => client.invalidateQueries({ queryKey: ['portal-links'] }),
  });
  return (
    <>
      <MakeLink appName={appName} made={made} />
      <PortalLinks
        appId={appId}
        onRevoked={(linkId) => {
          if (linkId === made.data?.id) made.reset();
        }}
      />
    </>
  );
}

interface MakeLinkProps {
  appName: string;
  made: UseMutationResult<Schemas['PortalLink'], Error, LinkDraft>;
}

function MakeLink({ appName, made }: MakeLinkProps) {
  const [draft, setDraft] = useState(FIRST);
  const problems = problemsOf(draft);
  const isRight = Object.keys(problems).length === 0;
  return (
    <Section title="Portal">
      <Text size="sm">
        A link opens the webhooks, messages and attempts of this app, and nothing else, for whoever
        has it. It works once. If you signed in with an API key, it also ends with that key.
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
          loading={made.isPending}
          disabled={!isRight}
          onClick={() => {
            made.mutate(draft);
          }}
        >
          Make a portal link
        </Button>
      </Group>
      {made.error !== null && <Failed error={made.error} what="make the link" />}
      {made.data !== undefined && <MadeLink key={made.data.id} link={made.data} />}
    </Section>
  );
}

function MadeLink({ link: { url, expiresAt } }: { link: Schemas['PortalLink'] }) {
  return (
    <div role="status">
      <Copyable text={url ?? ''} name="portal link" />
      <Text size="sm">
        It expires <When at={expiresAt} />, and is not shown again.
      </Text>
    </div>
  );
}
