import {
  ActionIcon,
  Button,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { toFailure } from '../api/failure.ts';
import { changeSession } from '../api/query-client.ts';
import { signOut } from '../api/session.ts';
import { MoonIcon, SunIcon } from '../parts/icons.tsx';
import styles from './frame.module.css';

/** The colour scheme, and the way out. */
export function Settings() {
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
      <SignOut />
    </div>
  );
}

function SignOut() {
  const mutation = useMutation({
    mutationFn: signOut,
    onSuccess: () => {
      changeSession(null);
    },
  });
  return (
    <>
      {mutation.error !== null && (
        <Text size="sm" c="red" role="alert">
          Could not sign out. {toFailure(mutation.error).message}
        </Text>
      )}
      <Button
        variant="default"
        loading={mutation.isPending}
        onClick={() => {
          mutation.mutate();
        }}
      >
        Sign out
      </Button>
    </>
  );
}
