import type { Arrivals } from './load/arrivals.ts';
import type { GatewayClient } from './load/gateway-client.ts';
import type { Behaviour } from './load/receivers.ts';
import type { BatchLoad, Load } from './load/loops.ts';
import type { Goal, Table } from './report/report.ts';
import type { MeasurePhase, Phase } from './measure/phase.ts';
import type { BenchStack } from './stack/start-stack.ts';
import type { UsualService } from '../tools/local-stack/supervisor/services.ts';
import type { UsageWatch } from './measure/watch-usage.ts';

/** A number above 0. */
interface NumberOption {
  default: number;
  meaning: string;
}

/** Any text. */
interface TextOption {
  default: string;
  meaning: string;
}

interface ChoiceOption {
  default: string;
  choices: readonly string[];
  meaning: string;
}

/** Name of an option → its default. */
export type ScenarioOptions = Record<string, NumberOption | TextOption | ChoiceOption>;
export type OptionValues<Options extends ScenarioOptions> = {
  [Name in keyof Options]: Options[Name] extends { choices: readonly (infer Choice)[] }
    ? Choice
    : Options[Name] extends TextOption
      ? string
      : number;
};

export interface Bench {
  stack: BenchStack;
  client: GatewayClient;
  arrivals: Arrivals;
  usage: UsageWatch;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
  measure: MeasurePhase;
  /** Opens endpoints of an app with one webhook each. They are closed when the scenario ends. */
  openEndpoints: (wanted: WantedEndpoints) => Promise<Endpoints>;
  log: (line: string) => void;
}

export interface Endpoints {
  appId: string;
  /** Indexed by the number of their endpoint. */
  webhookIds: readonly string[];
  /** Single messages to them. */
  load: Load;
  /** The same in requests of this many messages. */
  batchesOf: (size: number) => BatchLoad;
}

export interface WantedEndpoints {
  count: number;
  /** The number of listening ports; one for each endpoint by default. */
  ports?: number;
  behaviourOf?: (endpoint: number) => Behaviour;
  /** An app that exists; a new one by default. */
  appId?: string;
  /** Further fields of the webhook of an endpoint. */
  fieldsOf?: (endpoint: number) => object;
  /** Called for each arrival, instead of `arrivals.note`. */
  note?: Arrivals['note'];
  /** Stops the creation of webhooks early, so that there are fewer. */
  enough?: AbortSignal | undefined;
  /** What sends to them; `bench.client`, of the usual company, by default. */
  client?: GatewayClient;
}

export interface ScenarioResult {
  phases: Phase[];
  goals: Goal[];
  /** Tables in addition to those of the phases. */
  tables?: Table[];
  /** Measurements that only this scenario makes. */
  extra?: Record<string, unknown>;
  /** False when something is missing that no phase counts; true by default. */
  isComplete?: boolean;
}

export interface Scenario<Options extends ScenarioOptions = ScenarioOptions> {
  summary: string;
  options: Options;
  /** The services get no more memory than their pods; false by default. */
  isLimited?: boolean;
  /** A process that ingests topics runs too; false by default, so that it costs the others nothing. */
  ingests?: boolean;
  /** Returns variables of the environment of all services; called before they start. */
  environment?: () => Record<string, string>;
  /** Flags of Node for the three services; none by default. */
  serviceFlags?: readonly string[];
  /** Returns how many processes of a service there are; one of each by default. */
  processesOf?: (service: UsualService, options: OptionValues<Options>) => number;
  run: (bench: Bench, options: OptionValues<Options>) => Promise<ScenarioResult>;
}

/** Types the option values by the declared options, so that a scenario can read no others. */
export function defineScenario<const Options extends ScenarioOptions>({
  run,
  processesOf = () => 1,
  ...scenario
}: Scenario<Options>): Scenario {
  return {
    ...scenario,
    run: (bench, values) => run(bench, values as OptionValues<Options>),
    processesOf: (service, values) => processesOf(service, values as OptionValues<Options>),
  };
}
