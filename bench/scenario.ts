import type { Arrivals } from './load/arrivals.ts';
import type { GatewayClient } from './load/gateway-client.ts';
import type { Behaviour } from './load/receivers.ts';
import type { Load } from './load/loops.ts';
import type { Goal } from './measure/goals.ts';
import type { MeasurePhase, Phase } from './measure/measure-phase.ts';
import type { Column } from './report/chart.ts';
import type { Table } from './report/report.ts';
import type { BenchStack } from './stack/start-stack.ts';
import type { UsageWatch } from './stack/watch-usage.ts';

/** Name of an option → its default; all are numbers above 0. */
export type ScenarioOptions = Record<string, { default: number; meaning: string }>;
export type OptionValues<Options extends ScenarioOptions> = Record<keyof Options, number>;

export interface Bench {
  stack: BenchStack;
  client: GatewayClient;
  arrivals: Arrivals;
  usage: UsageWatch;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
  measure: MeasurePhase;
  /** Endpoints with one webhook each, closed at the end by themselves. */
  openEndpoints: (wanted: WantedEndpoints) => Promise<Load>;
  /** Endpoints of one app; a message to it goes to each. */
  openApp: (wanted: WantedEndpoints) => Promise<string>;
  /** The same, for messages that do not come in by the front door. */
  openTargets: (wanted: WantedEndpoints) => Promise<Targets>;
  log: (line: string) => void;
}

/** Whose messages go to a set of endpoints. */
export interface Targets {
  appId: string;
  /** By the number of their endpoint. */
  webhookIds: readonly string[];
}

export interface WantedEndpoints {
  count: number;
  /** As many as endpoints unless given. */
  ports?: number;
  behaviourOf?: (endpoint: number) => Behaviour;
  /** Is told of what arrives, in place of `arrivals`. */
  note?: Arrivals['note'];
  /** Ends the creation of their webhooks early, so that there are fewer. */
  enough?: AbortSignal | undefined;
}

export interface Outcome {
  phases: Phase[];
  goals: Goal[];
  /** Tables beside those of the phases. */
  tables?: Table[];
  /** What only this scenario measures. */
  extra?: Record<string, unknown>;
  /** False when something is missing that no phase counts; true unless told. */
  isWhole?: boolean;
  /** Charts beside those of the phases. */
  columns?: Column[];
}

export interface Scenario<Options extends ScenarioOptions = ScenarioOptions> {
  summary: string;
  options: Options;
  /** The services get no more memory than their pods; false unless told. */
  isLimited?: boolean;
  run: (bench: Bench, options: OptionValues<Options>) => Promise<Outcome>;
}

/** Keeps the names of the options, so that a scenario reads what it has declared. */
export function defineScenario<Options extends ScenarioOptions>(
  scenario: Scenario<Options>,
): Scenario {
  const { summary, options, isLimited = false } = scenario;
  return {
    summary,
    options,
    isLimited,
    run: (bench, values) => scenario.run(bench, values as OptionValues<Options>),
  };
}
