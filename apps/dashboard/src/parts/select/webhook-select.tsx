import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { findWebhooksQuery, webhooksOfQuery } from '../../api/webhooks.ts';

interface WebhookSelectProps {
  value: string;
  /** Only the webhooks of this app. */
  appId: string | undefined;
  onChange: (webhookId: string) => void;
}

/** While somebody types, the gateway is not asked for each letter. */
const QUIET_MS = 250;

/** Chooses a webhook by part of its URL, name or event types, or by its id or uid. */
export function WebhookSelect({ value, appId, onChange }: WebhookSelectProps) {
  const [typed, setTyped] = useState('');
  const [text] = useDebouncedValue(typed, QUIET_MS);
  const { data: chosen } = useQuery(webhooksOfQuery(value === '' ? [] : [value]));
  const shown = chosen?.get(value)?.url ?? value;
  // What is chosen stands in the field as if it were typed.
  const asked = text === shown ? '' : text.trim();
  const { data, error, hasNextPage } = useInfiniteQuery(findWebhooksQuery({ text: asked, appId }));
  const offered = data?.pages[0]?.data.filter(({ id }) => id !== value) ?? [];
  return (
    <Select
      label="Webhook"
      maw="26rem"
      placeholder="All webhooks"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Clear: All webhooks' }}
      value={value === '' ? null : value}
      error={error === null ? undefined : `The webhooks could not be loaded: ${error.message}`}
      data={[
        ...(value === '' ? [] : [{ value, label: shown }]),
        ...offered.map(({ id, url }) => ({ value: id, label: url })),
      ]}
      // The gateway has chosen them.
      filter={({ options }) => options}
      nothingFoundMessage={
        data === undefined ? 'Waiting for the webhooks …' : noneFound(hasNextPage)
      }
      description={hasNextPage ? 'Type part of a URL to see more' : undefined}
      onSearchChange={setTyped}
      onChange={(next) => {
        onChange(next ?? '');
      }}
    />
  );
}

/** The gateway looks at the 1,000 newest webhooks. */
function noneFound(isMore: boolean): string {
  return isMore ? 'Not among the 1,000 newest webhooks: give the id' : 'No webhook has this';
}
