import { Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.ts';
import { outcomeWords } from '../../parts/outcomes.ts';
import { SuccessRatio } from '../../parts/ratio-bar.tsx';
import { Rows, type Column } from '../../parts/rows.tsx';
import { countText } from '../../parts/time/time-words.ts';
import { When } from '../../parts/time/when.tsx';

type Worst = Schemas['WorstWebhook'];

export function WorstWebhooks({ worst }: { worst: readonly Worst[] }) {
  if (worst.length === 0) return <Text>No webhook has failed attempts in this time.</Text>;
  return (
    <Rows
      caption="Webhooks with the most failed attempts"
      columns={COLUMNS}
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
  { name: 'Since', cell: ({ since }) => <When at={since} /> },
];
