import { Button, Group, Text, Textarea } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { portalSettingsQuery, writePortalSettings } from '../../api/projects.ts';
import { Section } from '../../parts/page.tsx';
import { Failed, QueryView } from '../../parts/states.tsx';
import styles from './projects.module.css';

/** The sites of the company that may show its portal in a frame. */
export function PortalOrigins() {
  const query = useQuery(portalSettingsQuery);
  return (
    <Section title="Portal in a frame">
      <Text size="sm">
        Pages of these origins may show the portal in a frame, and logos may come from them. Without
        one, the portal opens in a window of its own only.
      </Text>
      <QueryView query={query} what="the settings of the portal">
        {({ origins }) => <OriginsForm origins={origins} />}
      </QueryView>
    </Section>
  );
}

function OriginsForm({ origins }: { origins: readonly string[] }) {
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: writePortalSettings,
    onSuccess: () => client.invalidateQueries({ queryKey: portalSettingsQuery.queryKey }),
  });
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        const text = new FormData(event.currentTarget).get('origins');
        save.mutate({ origins: typeof text === 'string' ? text.split(/\s+/).filter(Boolean) : [] });
      }}
    >
      {save.error !== null && <Failed error={save.error} what="save the origins" />}
      <Textarea
        name="origins"
        label="Origins, one on each line"
        placeholder="https://app.example.com"
        rows={3}
        defaultValue={origins.join('\n')}
      />
      <Group>
        <Button type="submit" variant="default" loading={save.isPending}>
          Save origins
        </Button>
        {save.isSuccess && (
          <Text size="sm" role="status">
            Saved.
          </Text>
        )}
      </Group>
    </form>
  );
}
