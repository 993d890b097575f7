import { CONSTANTS } from './constants.ts';
import type { Load, Rates } from './load.ts';
import { dividingReplicas, partitionsFor } from './partitions.ts';
import { choice, figure, product, type Section } from './sheet.ts';

/** Of each service, so that one may end: it is restarted, its node is drained, it dies. */
const MIN_REPLICAS = 2;

export interface Processes {
  gateways: number;
  dispatchers: number;
  retryProcesses: number;
  partitions: number;
}

const {
  gatewayCpuMs,
  gatewayTargetCpuMs,
  gatewayCores,
  dispatcherAttempts,
  dispatcherPlaces,
  slowLanePlaces,
  slowFromMs,
  retryRetries,
} = CONSTANTS;

export function planProcesses(load: Load, rates: Rates): Processes {
  const neededDispatchers = atLeastTwo(
    Math.max(dispatchersByRate(rates), dispatchersByLatency(load, rates)),
  );
  const neededRetry = atLeastTwo(rates.retries / retryRetries.value);
  const partitions = partitionsFor(Math.max(neededDispatchers, neededRetry) * load.growth);
  return {
    gateways: atLeastTwo(gatewayCoresOf(load) / gatewayCores.value),
    dispatchers: dividingReplicas(partitions, neededDispatchers),
    retryProcesses: dividingReplicas(partitions, neededRetry),
    partitions,
  };
}

function atLeastTwo(processes: number): number {
  return Math.max(MIN_REPLICAS, Math.ceil(processes));
}

export function gatewayCoresOf({ messagesPerSecond, targetsPerMessage }: Load): number {
  const furtherTargets = Math.max(0, targetsPerMessage - 1);
  const msPerMessage = gatewayCpuMs.value + furtherTargets * gatewayTargetCpuMs.value;
  return (messagesPerSecond * msPerMessage) / 1_000;
}

function dispatchersByRate({ attempts }: Rates): number {
  return attempts / dispatcherAttempts.value;
}

function dispatchersByLatency(load: Load, { attempts }: Rates): number {
  return (attempts * load.endpointLatencyMs) / 1_000 / placesFor(load);
}

/** Attempts to slow endpoints are made in the slow lane. */
function placesFor({ endpointLatencyMs }: Load): number {
  return endpointLatencyMs < slowFromMs.value ? dispatcherPlaces.value : slowLanePlaces.value;
}

export function gatewaySection(load: Load, { gateways }: Processes): Section {
  const cores = gatewayCoresOf(load);
  const further = figure(Math.max(0, load.targetsPerMessage - 1));
  const perMessage = `(${gatewayCpuMs.value} + ${further} × ${gatewayTargetCpuMs.value}) ms ÷ 1,000`;
  return {
    title: 'Gateway',
    lines: [
      product('CPU', `${figure(load.messagesPerSecond)} messages × ${perMessage}`, cores, 'cores'),
      product(
        'processes by CPU',
        `${figure(cores)} cores ÷ ${gatewayCores.value} cores`,
        cores / gatewayCores.value,
        'processes',
      ),
      choice('replicas', `rounded up, and at least ${MIN_REPLICAS}`, gateways, 'pods'),
    ],
  };
}

export function dispatcherSection(
  load: Load,
  rates: Rates,
  { dispatchers, partitions }: Processes,
): Section {
  const seconds = figure(load.endpointLatencyMs / 1_000);
  const places = placesFor(load);
  return {
    title: 'Dispatcher and partitions',
    lines: [
      product(
        'processes by rate',
        `${figure(rates.attempts)} attempts ÷ ${figure(dispatcherAttempts.value)} attempts`,
        dispatchersByRate(rates),
        'processes',
      ),
      product(
        'processes by latency',
        `${figure(rates.attempts)} attempts × ${seconds} s ÷ ${figure(places)} places`,
        dispatchersByLatency(load, rates),
        'processes',
      ),
      choice(
        'partitions',
        `a multiple of 12 with many divisors, ${figure(load.growth)} times the processes or more`,
        partitions,
        'partitions of each topic',
      ),
      choice(
        'replicas',
        `the next number that divides ${partitions}, and at least ${MIN_REPLICAS}`,
        dispatchers,
        'pods',
      ),
    ],
  };
}

export function retrySection(
  { retries }: Rates,
  { retryProcesses, partitions }: Processes,
): Section {
  return {
    title: 'Retry',
    lines: [
      product(
        'processes by rate',
        `${figure(retries)} retries ÷ ${figure(retryRetries.value)} retries`,
        retries / retryRetries.value,
        'processes',
      ),
      choice(
        'replicas',
        `the next number that divides ${partitions}, and at least ${MIN_REPLICAS}`,
        retryProcesses,
        'pods',
      ),
    ],
  };
}
