import { Button, NativeSelect, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { toFailure } from '../api/failure.ts';
import { leave } from '../api/issuer.ts';
import { changeSession, showSignedOut } from '../api/query-client.ts';
import { enterCompany, type Session } from '../api/session.ts';
import { valueTo } from '../parts/form-fields.ts';
import { Cut } from '../parts/values.tsx';
import { useSession } from '../session/session-context.ts';
import styles from './frame.module.css';

/** Who is signed in, in which company, with the others of this person. Not there with a key or a link. */
export function WhoAndWhere() {
  const { person, companies, company } = useSession();
  if (person === null) return null;
  return (
    <section className={styles.person} aria-label="Signed in as">
      <strong>
        <Cut text={person.name ?? person.id} />
      </strong>
      <Text size="xs" c="dimmed">
        Role: {person.role}
      </Text>
      {companies !== null && companies.length > 1 && (
        <CompanySelect company={company} companies={companies} />
      )}
      <SignOutEverywhere />
    </section>
  );
}

interface CompanySelectProps {
  company: Session['company'];
  companies: NonNullable<Session['companies']>;
}

/** Goes on in another company. Ids of the one before name nothing there, so that its first page is shown. */
function CompanySelect({ company, companies }: CompanySelectProps) {
  const navigate = useNavigate();
  const enter = useMutation({
    mutationFn: enterCompany,
    onSuccess: async (session) => {
      await navigate({ to: '/', search: {} });
      changeSession(session);
    },
  });
  return (
    <NativeSelect
      label="Company"
      size="xs"
      value={company.id}
      disabled={enter.isPending}
      error={enter.error && toFailure(enter.error).message}
      data={companies.map(({ id, name }) => ({ value: id, label: name }))}
      onChange={valueTo((companyId) => {
        enter.mutate(companyId);
      })}
    />
  );
}

function SignOutEverywhere() {
  const end = useMutation({ mutationFn: () => leave(true), onSuccess: showSignedOut });
  return (
    <>
      <Button
        variant="subtle"
        size="compact-xs"
        loading={end.isPending}
        onClick={() => {
          end.mutate();
        }}
      >
        Sign out everywhere
      </Button>
      {end.error !== null && (
        <Text size="xs" c="red" role="alert">
          {toFailure(end.error).message}
        </Text>
      )}
    </>
  );
}
