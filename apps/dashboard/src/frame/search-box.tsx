import { Button, Kbd, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { toFailure } from '../api/failure.ts';
import { findAnything, type Found } from '../api/find.ts';
import { SearchIcon } from '../parts/icons.tsx';
import styles from './frame.module.css';

/** Finds anything by its id or uid. `/` moves the cursor here from anywhere. */
export function SearchBox() {
  const input = useSlashKey();
  const [text, setText] = useState('');
  const open = useOpenFound();
  const mutation = useMutation({
    mutationFn: findAnything,
    onSuccess: ([first, ...others]) => {
      if (first !== undefined && others.length === 0) openOne(first);
    },
  });
  const openOne = (found: Found): void => {
    mutation.reset();
    setText('');
    open(found);
  };
  const error = mutation.error === null ? undefined : toFailure(mutation.error);
  const problem = error?.status === 404 ? NOTHING_FOUND : error?.message;
  return (
    <form
      role="search"
      className={styles.search}
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== '') mutation.mutate(text.trim());
      }}
    >
      <TextInput
        ref={input}
        value={text}
        aria-label={LABEL}
        placeholder={PLACEHOLDER}
        leftSection={<SearchIcon />}
        rightSection={<Kbd size="xs">/</Kbd>}
        error={problem}
        errorProps={{ className: styles.searchProblem, role: 'alert' }}
        onChange={({ currentTarget }) => {
          mutation.reset();
          setText(currentTarget.value);
        }}
      />
      {mutation.data !== undefined && mutation.data.length > 1 && (
        <Choice found={mutation.data} open={openOne} />
      )}
    </form>
  );
}

const [LABEL, PLACEHOLDER, NOTHING_FOUND] =
  PORTAL_COMPANY_ID === null
    ? [
        'Find anything by its id or uid',
        'Find by id or uid: msg_…, wh_…',
        'Nothing of this company has this id or uid',
      ]
    : ['Find anything by its id', 'Find by id: msg_…, wh_…, dlv_…', 'Nothing here has this id'];

/** An app, a webhook and a project may have the same uid. */
function Choice({ found, open }: { found: readonly Found[]; open: (found: Found) => void }) {
  return (
    <div className={styles.searchChoice} role="status">
      Several have this uid:
      {found.map((each) => (
        <Button
          key={each.kind}
          size="compact-xs"
          variant="default"
          onClick={() => {
            open(each);
          }}
        >
          Open the {each.kind}
        </Button>
      ))}
    </div>
  );
}

function useSlashKey() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof Element && event.target.closest(TYPING) !== null;
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => {
      document.removeEventListener('keydown', onKey);
    };
  }, []);
  return input;
}

const TYPING = 'input, textarea, select, [contenteditable]';

/** Returns what opens the page of a found thing. */
function useOpenFound(): (found: Found) => void {
  const navigate = useNavigate();
  return ({ kind, id, messageId }) => {
    switch (kind) {
      case 'project':
        return void navigate({ to: '/projects/$projectId', params: { projectId: id } });
      case 'app':
        return void navigate({ to: '/apps/$appId', params: { appId: id } });
      case 'webhook':
        return void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } });
      case 'message':
        return void navigate({ to: '/messages/$messageId', params: { messageId: id } });
      case 'delivery':
      case 'attempt':
        return void navigate({
          to: '/messages/$messageId',
          params: { messageId: messageId ?? id },
          hash: id,
        });
      case 'resend':
        return void navigate({ to: '/resends/$resendId', params: { resendId: id } });
      case 'cancellation':
        return void navigate({ to: '/resends', hash: id });
      case 'api_key':
        return void navigate({ to: '/api-keys', hash: id });
    }
  };
}
