import {
  ActionIcon,
  Button,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { sessionQuery, signOut } from '../api/session.ts';
import { MoonIcon, SunIcon } from '../parts/icons.tsx';
import { useSession } from '../session/session-context.ts';
import styles from './frame.module.css';

/** The colour scheme, and the way out. */
export function Settings() {
  const { kind } = useSession();
  const { setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const scheme = useComputedColorScheme('light');
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <div className={styles.settings}>
      <Tooltip label={`Show in ${other} colours`}>
        <ActionIcon
          variant="default"
          size="lg"
          aria-label={`Show in ${other} colours`}
          onClick={() => {
            setColorScheme(other);
          }}
        >
          {scheme === 'dark' ? <SunIcon /> : <MoonIcon />}
        </ActionIcon>
      </Tooltip>
      {kind === 'company' && <SignOut />}
    </div>
  );
}

function SignOut() {
  const client = useQueryClient();
  const mutation = useMutation({
    mutationFn: signOut,
    onSettled: () => {
      client.clear();
      client.setQueryData(sessionQuery.queryKey, null);
    },
  });
  return (
    <Button
      variant="default"
      loading={mutation.isPending}
      onClick={() => {
        mutation.mutate();
      }}
    >
      Sign out
    </Button>
  );
}
