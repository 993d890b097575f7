import { Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { outcomeWords, type Range } from '../../api/words.ts';
import { SuccessRatio } from '../../parts/figures.tsx';
import { type Column, Rows } from '../../parts/table.tsx';
import { countText } from '../../parts/time-words.ts';
import { Hour, When } from '../../parts/values.tsx';

type Worst = Schemas['WorstWebhook'];

interface WorstWebhooksProps {
  worst: readonly Worst[];
  range: Range;
}

/** Longer ranges than an hour are counted by hour. */
export function WorstWebhooks({ worst, range }: WorstWebhooksProps) {
  if (worst.length === 0) return <Text>No webhook has failed attempts in this time.</Text>;
  return (
    <Rows
      caption="Webhooks with the most failed attempts"
      columns={[...COLUMNS, range === '1h' ? SINCE_MINUTE : SINCE_HOUR]}
      rows={worst}
      keyOf={({ webhookId }) => webhookId}
    />
  );
}

const COLUMNS: readonly Column<Worst>[] = [
  {
    name: 'Webhook',
    cell: ({ webhookId, url }) => (
      <Link to="/webhooks/$webhookId" params={{ webhookId }}>
        {url}
      </Link>
    ),
  },
  { name: 'Mostly', cell: ({ reason }) => `the endpoint ${outcomeWords(reason)}` },
  { name: 'Success', cell: ({ successRatio }) => <SuccessRatio ratio={successRatio} /> },
  { name: 'Failed', isNumber: true, cell: ({ failed }) => countText(failed) },
];

const SINCE_MINUTE: Column<Worst> = {
  name: 'Since',
  cell: ({ since }) => <When at={since} />,
};

const SINCE_HOUR: Column<Worst> = {
  name: 'First failed in',
  cell: ({ since }) => <Hour at={since} />,
};
