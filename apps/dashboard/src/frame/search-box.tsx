import { Kbd, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { PORTAL_COMPANY_ID } from '../api/addresses.ts';
import { toFailure } from '../api/failure.ts';
import { findById, type Found } from '../api/find/find.ts';
import { SearchIcon } from '../parts/icons.tsx';
import styles from './frame.module.css';

/** Finds anything by its id. `/` moves the cursor here from anywhere. */
export function SearchBox() {
  const input = useSlashKey();
  const [text, setText] = useState('');
  const open = useOpenFound();
  const mutation = useMutation({
    mutationFn: findById,
    onSuccess: (found) => {
      setText('');
      open(found);
    },
  });
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
        aria-label="Find anything by its id"
        placeholder="Find by id: msg_…, wh_…, dlv_…"
        leftSection={<SearchIcon />}
        rightSection={<Kbd size="xs">/</Kbd>}
        error={problem}
        errorProps={{ className: styles.searchProblem, role: 'alert' }}
        onChange={({ currentTarget }) => {
          mutation.reset();
          setText(currentTarget.value);
        }}
      />
    </form>
  );
}

const NOTHING_FOUND =
  PORTAL_COMPANY_ID === null ? 'Nothing of this company has this id' : 'Nothing here has this id';

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
      case 'api_key':
        return void navigate({ to: '/api-keys', hash: id });
    }
  };
}
