import { Alert, Button, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { goToIssuer, hereForIssuer } from '../api/issuer.ts';
import { Failed } from '../parts/states.tsx';
import { useNowMs } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';
import styles from './frame.module.css';

/** Enough to finish a form, and short enough to disturb nobody before. */
const OFFERED_MS = 5 * 60_000;
const MINUTE_MS = 60_000;

/** The session of a person ends for good. Before that it can be renewed, mostly without a question of the issuer. */
export function RenewalOffer() {
  const { person, company, expiresAt } = useSession();
  const leftMs = Date.parse(expiresAt) - useNowMs();
  const renew = useMutation({
    mutationFn: () => goToIssuer({ to: hereForIssuer(), companyId: company.id }),
  });
  if (person === null || leftMs > OFFERED_MS || leftMs <= 0) return null;
  return (
    // The frame is a column, in which an alert alone would shrink.
    <div className={styles.renewal}>
      <Alert color="blue" variant="light" role="status" title="Your session ends soon">
        <Text size="sm">
          It ends in {minutesText(leftMs)}. Renewing leads to your issuer and back to this page; a
          form that is not sent is lost.
        </Text>
        {renew.error !== null && <Failed error={renew.error} what="renew the session" />}
        <Button
          mt="xs"
          size="xs"
          loading={renew.isPending}
          onClick={() => {
            renew.mutate();
          }}
        >
          Renew the session
        </Button>
      </Alert>
    </div>
  );
}

function minutesText(leftMs: number): string {
  const minutes = Math.ceil(leftMs / MINUTE_MS);
  return minutes === 1 ? 'a minute' : `${minutes} minutes`;
}
