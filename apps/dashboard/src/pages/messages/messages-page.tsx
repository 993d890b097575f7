import { NativeSelect } from '@mantine/core';
import { MESSAGE_RULES } from '@posthorn/client/rules';
import { getRouteApi } from '@tanstack/react-router';
import { SidePanel } from '../../parts/dialog.tsx';
import {
  AppSelect,
  EventTypeInput,
  FilterBar,
  FilterInput,
  TimeInput,
  WebhookSelect,
} from '../../parts/filters.tsx';
import { valueTo } from '../../parts/form-fields.ts';
import { LinkButton, Page } from '../../parts/page.tsx';
import type { MessageSearch } from '../../search.ts';
import { useRights, useSession } from '../../session/session-context.ts';
import { MessageList } from './message-list.tsx';
import { MessageDetail } from './message-page.tsx';
import styles from './messages.module.css';

const route = getRouteApi('/messages');

export function MessagesPage() {
  const { open, ...filter } = route.useSearch();
  const navigate = route.useNavigate();
  const { canSend } = useRights();
  const show = (messageId: string | undefined): void => {
    void navigate({
      search: (before) => ({ ...before, open: messageId }),
    });
  };
  const actions = canSend && <LinkButton to="/messages/new">Send a message</LinkButton>;
  return (
    <Page title="Messages" actions={actions}>
      <Filters filter={filter} />
      <MessageList filter={filter} open={show} key={JSON.stringify(filter)} />
      <OpenMessage
        messageId={open}
        close={() => {
          show(undefined);
        }}
      />
    </Page>
  );
}

const STATUSES = [
  { value: '', label: 'Any status' },
  { value: 'pending', label: 'Pending' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'exhausted', label: 'Exhausted' },
  { value: 'cancelled', label: 'Cancelled' },
  { value: 'no_target', label: 'No target' },
];

function Filters({ filter }: { filter: Omit<MessageSearch, 'open'> }) {
  const navigate = route.useNavigate();
  const { key } = useSession();
  const { appId, webhookId = '', eventType, tag, externalId, status = '', since, until } = filter;
  const set =
    (name: keyof MessageSearch) =>
    (value: string): void => {
      void navigate({
        search: (before) => ({ ...before, open: undefined, [name]: value || undefined }),
        replace: true,
      });
    };
  return (
    <FilterBar
      isFiltered={Object.keys(filter).length > 0}
      clear={() => void navigate({ search: {} })}
    >
      {key.appId === null && (
        <AppSelect value={appId ?? ''} noneLabel="All apps" onChange={set('appId')} />
      )}
      <WebhookSelect appId={appId} value={webhookId} onChange={set('webhookId')} />
      <EventTypeInput value={eventType} set={set('eventType')} />
      <FilterInput
        label="Tag"
        maxLength={MESSAGE_RULES.tags.entry.maxChars}
        value={tag}
        set={set('tag')}
      />
      <FilterInput
        label="External id"
        maxLength={MESSAGE_RULES.externalId.maxChars}
        value={externalId}
        set={set('externalId')}
      />
      <NativeSelect
        label="Status"
        data={STATUSES}
        value={status}
        onChange={valueTo(set('status'))}
      />
      <TimeInput label="From (your time)" value={since} set={set('since')} />
      <TimeInput label="Until (your time)" value={until} set={set('until')} />
    </FilterBar>
  );
}

function OpenMessage({ messageId, close }: { messageId: string | undefined; close: () => void }) {
  return (
    <SidePanel title="Message" isOpen={messageId !== undefined} close={close}>
      {messageId !== undefined && (
        <div className={styles.panel}>
          <div>
            <LinkButton
              to="/messages/$messageId"
              params={{ messageId }}
              variant="default"
              size="xs"
            >
              Open as a page
            </LinkButton>
          </div>
          <MessageDetail messageId={messageId} />
        </div>
      )}
    </SidePanel>
  );
}
