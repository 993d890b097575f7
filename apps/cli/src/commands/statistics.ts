import type { Command } from '@commander-js/extra-typings';
import type { FailureGroup, OpenCircuit, Overview, Stats } from '@posthorn/client';
import { parsePastTime } from '../options.ts';
import type { Columns } from '../output.ts';
import type { Session } from '../session.ts';
import { addListCommand } from './objects.ts';

const POINT_COLUMNS: Columns<Stats['points'][number]> = {
  at: ({ at }) => at,
  attempts: ({ attempts }) => attempts,
  succeeded: ({ succeeded }) => succeeded,
  failed: ({ failed }) => failed,
  'p50 ms': ({ latencyMs }) => latencyMs.p50,
  'p95 ms': ({ latencyMs }) => latencyMs.p95,
  'p99 ms': ({ latencyMs }) => latencyMs.p99,
};

const FAILURE_COLUMNS: Columns<FailureGroup> = {
  webhook: ({ webhookId }) => webhookId,
  outcome: ({ outcome }) => outcome,
  count: ({ count }) => count,
  first: ({ firstAt }) => firstAt,
  last: ({ lastAt }) => lastAt,
  url: ({ url }) => url,
};

const CIRCUIT_COLUMNS: Columns<OpenCircuit> = {
  webhook: ({ webhookId }) => webhookId,
  circuit: ({ circuit }) => circuit,
  since: ({ since }) => since,
  'next attempt': ({ probeAt }) => probeAt,
  url: ({ url }) => url,
};

/** `overview`, `stats`, `failure`, `circuit`, `find` and `source-ips`: what is read and never changed. */
export function addStatisticsCommands(program: Command, session: Session): void {
  addOverview(program, session);
  addStats(program, session);
  const failure: Command = program
    .command('failure')
    .description('failed attempts in groups of the same reason');
  addListCommand(failure, session, {
    listHelp: 'list groups of failed attempts',
    listOptions: [
      { flags: '--since <time>', help: 'since then, or 2h for ago', parse: parsePastTime },
      { flags: '--app <id>', help: 'only webhooks of this app' },
    ],
    list: ({ api }, { since, app }) =>
      api.statistics.failures({ since: since as string, appId: app as string }),
    columns: FAILURE_COLUMNS,
  });
  const circuit: Command = program
    .command('circuit')
    .description('webhooks whose deliveries wait, because their endpoint keeps failing');
  addListCommand(circuit, session, {
    listHelp: 'list webhooks whose circuit is open',
    listOptions: [{ flags: '--app <id>', help: 'only webhooks of this app' }],
    list: ({ api }, { app }) => api.statistics.circuits({ appId: app as string }),
    columns: CIRCUIT_COLUMNS,
  });
  program
    .command('find')
    .argument('<id>', 'an id of whatever kind')
    .description('find what has an id, and what it belongs to')
    .action(async (id) => {
      session.output.value(await session.api.find(id));
    });
  program
    .command('source-ips')
    .description('print the addresses from which deliveries come')
    .action(async () => {
      session.output.value(await session.api.sourceIps());
    });
}

function addOverview(program: Command, session: Session): void {
  program
    .command('overview')
    .description('print what was accepted, delivered and failed, and the worst webhooks')
    .addOption(
      program
        .createOption('--range <range>', 'the time up to now')
        .choices(['1h', '24h', '7d', '30d'] as const)
        .default('24h' as const),
    )
    .option('--app <id>', 'only this app')
    .option('--webhook <id>', 'only this webhook')
    .action(async ({ range, app, webhook }) => {
      const of = idsOf({ app, webhook });
      session.output.value(await session.api.statistics.overview({ range, ...of }), overviewOf);
    });
}

/** For people: the worst webhooks above the attempts by time, of which only times with some are shown. */
function overviewOf({ worst, series, ...counts }: Overview): object {
  return {
    ...counts,
    worst: worst.map(({ successRatio, ...webhook }) => ({
      webhook: webhook.webhookId,
      'success %': Math.round(100 * successRatio),
      failed: webhook.failed,
      reason: webhook.reason,
      since: webhook.since,
      url: webhook.url,
    })),
    series: series.filter(({ delivered, failed }) => delivered + failed > 0),
  };
}

function addStats(program: Command, session: Session): void {
  program
    .command('stats')
    .description('print counts of attempts and their latencies by time')
    .addOption(
      program
        .createOption('--step <step>', 'what one line stands for')
        .choices(['minute', 'hour', 'day'] as const)
        .default('hour' as const),
    )
    .option('--since <time>', 'since then, or 2h for ago', parsePastTime)
    .option('--until <time>', 'until then', parsePastTime)
    .option('--app <id>', 'only this app')
    .option('--webhook <id>', 'only this webhook')
    .action(async ({ step, since, until, app, webhook }) => {
      const stats = await session.api.statistics.get({
        step,
        ...(since === undefined ? {} : { since }),
        ...(until === undefined ? {} : { until }),
        ...idsOf({ app, webhook }),
      });
      if (session.output.isJson) session.output.value(stats);
      else session.output.table(stats.points, POINT_COLUMNS);
    });
}

function idsOf({ app, webhook }: { app: string | undefined; webhook: string | undefined }): {
  appId?: string;
  webhookId?: string;
} {
  return {
    ...(app === undefined ? {} : { appId: app }),
    ...(webhook === undefined ? {} : { webhookId: webhook }),
  };
}
