import { Text } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import type { Schemas } from '../../api/client.ts';
import { portalLinksQuery, revokePortalLink } from '../../api/projects.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Section } from '../../parts/page.tsx';
import { QueryView, ShowMore } from '../../parts/states.tsx';
import { Status, type Tone } from '../../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../../parts/table.tsx';
import { Copyable, When } from '../../parts/values.tsx';

type ListedLink = Schemas['ListedPortalLink'];

interface PortalLinksProps {
  appId: string;
  /** Not there for who may not revoke any. */
  onRevoked?: (linkId: string) => void;
}

/** The links to the portal of an app that have not expired, so that each can be revoked. */
export function PortalLinks({ appId, onRevoked }: PortalLinksProps) {
  const query = useInfiniteQuery(portalLinksQuery(appId));
  return (
    <Section title="Portal links">
      <QueryView query={query} what="the portal links">
        {({ pages }) => {
          const links = pages.flat();
          return links.length === 0 ? (
            <Text size="sm">
              No link can be used now. A link is in this list, opened or not, until it expires or is
              revoked.
            </Text>
          ) : (
            <Rows
              caption="Portal links"
              columns={onRevoked ? [...COLUMNS, changeColumn(onRevoked)] : COLUMNS}
              rows={links}
              keyOf={({ id }) => id}
            />
          );
        }}
      </QueryView>
      <ShowMore query={query}>Show more links</ShowMore>
    </Section>
  );
}

const STATUS: Record<ListedLink['status'], { tone: Tone; text: string }> = {
  unopened: { tone: 'waiting', text: 'not opened yet' },
  opened: { tone: 'good', text: 'opened' },
  ended: { tone: 'off', text: 'ended with its API key' },
};

const COLUMNS: readonly Column<ListedLink>[] = [
  { name: 'Link', width: 13, cell: ({ id }) => <Copyable text={id} name="link id" /> },
  {
    name: 'State',
    width: 11,
    cell: ({ status, openedAt }) => (
      <>
        <Status tone={STATUS[status].tone}>{STATUS[status].text}</Status>{' '}
        {openedAt !== null && <When at={openedAt} />}
      </>
    ),
  },
  { name: 'Allows', cell: ({ capabilities }) => capabilities.join(', ') },
  { name: 'Made', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
  { name: 'Expires', width: WIDTHS.time, cell: ({ expiresAt }) => <When at={expiresAt} /> },
];

function changeColumn(onRevoked: (linkId: string) => void): Column<ListedLink> {
  return {
    name: 'Change',
    width: 7,
    cell: ({ id }) => <RevokeLink linkId={id} onRevoked={onRevoked} />,
  };
}

function RevokeLink({
  linkId,
  onRevoked,
}: {
  linkId: string;
  onRevoked: (linkId: string) => void;
}) {
  const client = useQueryClient();
  return (
    <Confirm
      action="Revoke"
      size="xs"
      about={{ kind: 'portal link', name: linkId }}
      consequence="The link will open nothing any more, and a visit that it began ends within two seconds."
      perform={() => revokePortalLink(linkId)}
      onDone={() => {
        onRevoked(linkId);
        void client.invalidateQueries({ queryKey: ['portal-links'] });
      }}
    />
  );
}
