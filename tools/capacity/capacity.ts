import { topicNames, topicSpecs } from '@posthorn/domain/records/topics.ts';
import {
  DEFAULT_DEFERRAL_DELAYS,
  DEFAULT_RETRY_DELAYS,
  deferralDelaysSchema,
  retryScheduleSchema,
} from '@posthorn/domain/delivery/schedule.ts';
import { dividingReplicas, partitionsFor, replicaSteps } from '../../k8s/scaling-steps.ts';
import type { PerService } from '../../bench/measure/per-service.ts';
import { valueOf, type Load } from './constants.ts';
import { createSheet } from './sheet.ts';

const DAY_MS = 86_400_000;
/** Of each service, so that one may end: it is restarted, its node is drained, it dies. */
const MIN_REPLICAS = 2;
/** A primary and two secondaries, each with all data: a majority is left when one is away. */
const MONGODB_MEMBERS = 3;
/** `delivery-failed`, a delay topic and `retry-due`. */
const RECORDS_PER_RETRY = 3;

const NAMES = topicNames(
  '',
  retryScheduleSchema.parse(DEFAULT_RETRY_DELAYS),
  deferralDelaysSchema.parse(DEFAULT_DEFERRAL_DELAYS),
);
const TOPICS = topicSpecs(NAMES);

function keptDaysOf(topic: string): number {
  return (TOPICS.find(({ name }) => name === topic)?.retentionMs ?? 0) / DAY_MS;
}

/** Returns the processes, memory, CPU and disks for a load, with the arithmetic. `limitBytes` are the memory limits of one pod of each service. */
export function planCapacity(load: Load, limitBytes: PerService<number>) {
  const sheet = createSheet();
  const rates = planRates(sheet, load);
  const gateway = planGateways(sheet, load);
  const processes = { gateways: gateway.gateways, ...planConsumers(sheet, load, rates) };
  return {
    processes,
    // Numbers of dispatchers or retry processes that own equal numbers of partitions.
    replicaSteps: replicaSteps(processes.partitions),
    ...planPods(sheet, rates, gateway.cores, processes, limitBytes),
    mongodb: planMongodb(sheet, load, rates),
    kafka: planKafka(sheet, load, rates, processes.partitions),
    sections: sheet.sections,
  };
}

export type Capacity = ReturnType<typeof planCapacity>;
type Sheet = ReturnType<typeof createSheet>;

type Processes = Record<'gateways' | 'dispatchers' | 'retryProcesses' | 'partitions', number>;
/** Per second. */
type Rates = Record<'deliveries' | 'retries' | 'attempts', number>;

function planRates({ section, line }: Sheet, load: Load): Rates {
  const { messagesPerSecond, targetsPerMessage, failureShare: p } = load;
  section('Rates');
  const deliveries = line`deliveries: ${messagesPerSecond} messages × ${targetsPerMessage} targets = deliveries/s`;
  // A second attempt follows a failure, a third one two failures, and so on up to the seventh (docs/contract.md C10.4).
  const each = line`retries of a delivery: ${p}^1 + ${p}^2 + ${p}^3 + ${p}^4 + ${p}^5 + ${p}^6 = retries`;
  const retries = line`retries: ${deliveries} deliveries × ${each} retries = retries/s`;
  const attempts = line`attempts: ${deliveries} deliveries + ${retries} retries = attempts/s`;
  return { deliveries, retries, attempts };
}

function atLeastTwo(processes: number): number {
  return Math.max(MIN_REPLICAS, Math.ceil(processes));
}

function planGateways(sheet: Sheet, { messagesPerSecond, targetsPerMessage }: Load) {
  const { section, line, choice } = sheet;
  const [first, further] = [valueOf('gatewayCpuMs'), valueOf('gatewayTargetCpuMs')];
  const others = Math.max(0, targetsPerMessage - 1);
  section('Gateway');
  const cores = line`CPU: ${messagesPerSecond} messages × (${first} + ${others} × ${further}) ms ÷ 1,000 = cores`;
  const needed = line`processes by CPU: ${cores} cores ÷ ${valueOf('gatewayCores')} cores = processes`;
  const how = `rounded up, and at least ${MIN_REPLICAS}`;
  return { gateways: choice('replicas', how, atLeastTwo(needed), 'pods'), cores };
}

/** Dispatchers and retry processes: their numbers divide the partitions. */
function planConsumers(sheet: Sheet, load: Load, { attempts, retries }: Rates) {
  const { section, line, choice } = sheet;
  const { endpointLatencyMs, growth } = load;
  const [ofDispatcher, ofRetry] = [valueOf('dispatcherAttempts'), valueOf('retryRetries')];
  const isSlow = endpointLatencyMs >= valueOf('slowFromMs');
  const places = valueOf(isSlow ? 'slowLanePlaces' : 'dispatcherPlaces');
  const retryNeeded = atLeastTwo(retries / ofRetry);
  section('Dispatcher and partitions');
  const byRate = line`processes by rate: ${attempts} attempts ÷ ${ofDispatcher} attempts = processes`;
  const byLatency = line`processes by latency: ${attempts} attempts × ${endpointLatencyMs / 1_000} s ÷ ${places} places = processes`;
  const needed = atLeastTwo(Math.max(byRate, byLatency));
  const partitions = partitionsFor(Math.max(needed, retryNeeded) * growth);
  const why = `a multiple of 12 with many divisors, ${growth} times the processes or more`;
  choice('partitions', why, partitions, 'partitions of each topic');
  const divides = `the next number that divides ${partitions}, and at least ${MIN_REPLICAS}`;
  const dispatchers = dividingReplicas(partitions, needed);
  choice('replicas', divides, dispatchers, 'pods');
  section('Retry');
  void line`processes by rate: ${retries} retries ÷ ${ofRetry} retries = processes`;
  const retryProcesses = dividingReplicas(partitions, retryNeeded);
  choice('replicas', divides, retryProcesses, 'pods');
  return { dispatchers, retryProcesses, partitions };
}

function planPods(
  { section, line }: Sheet,
  { attempts, retries }: Rates,
  gatewayCores: number,
  { gateways, dispatchers, retryProcesses }: Processes,
  limitBytes: PerService<number>,
) {
  const mib = (service: keyof typeof limitBytes): number => limitBytes[service] / 2 ** 20;
  const [attemptMs, retryMs] = [valueOf('dispatcherCpuMs'), valueOf('retryCpuMs')];
  section('All pods');
  const memoryMebibytes = line`memory: ${gateways} gateways × ${mib('gateway')} MiB + ${dispatchers} dispatchers × ${mib('dispatcher')} MiB + ${retryProcesses} retry × ${mib('retry')} MiB = MiB of limits`;
  const cores = line`CPU: ${gatewayCores} cores of gateways + (${attempts} attempts × ${attemptMs} ms + ${retries} retries × ${retryMs} ms) ÷ 1,000 = cores used`;
  return { memoryMebibytes, cores };
}

function planMongodb(sheet: Sheet, load: Load, { deliveries, retries, attempts }: Rates) {
  const { section, line } = sheet;
  const { messagesPerSecond: sent, payloadBytes, days } = load;
  // Of each attempt: docs/contract.md C9.9.
  const kept = Math.min(load.responseBytes, valueOf('keptResponseBytes'));
  section('MongoDB');
  const writes = line`writes: ${sent} messages + ${attempts} attempts = documents/s`;
  const cores = line`CPU of the primary: ${writes} documents ÷ ${valueOf('mongodbWrites')} documents = cores`;
  const messages = line`messages: ${sent} messages × (${payloadBytes} + ${valueOf('messageOverheadBytes')}) bytes × 86,400 s ÷ 1,000,000,000 = GB a day`;
  const made = line`deliveries: (${deliveries} deliveries × (${valueOf('deliveryBytes')} + ${kept}) bytes + ${retries} retries × (${valueOf('attemptBytes')} + ${kept}) bytes) × 86,400 s ÷ 1,000,000,000 = GB a day`;
  const indexes = line`indexes: (${sent} messages × ${valueOf('messageIndexBytes')} bytes + ${deliveries} deliveries × ${valueOf('deliveryIndexBytes')} bytes) × 86,400 s ÷ 1,000,000,000 = GB a day`;
  const diskTerabytes = line`disk of each member: (${messages} × ${valueOf('storedMessageShare')} + ${made} × ${valueOf('storedDeliveryShare')} + ${indexes}) GB × ${days} days ÷ 1,000 = TB`;
  void line`disk of the replica set: ${diskTerabytes} TB × ${MONGODB_MEMBERS} members = TB`;
  return { cores, diskTerabytes };
}

function planKafka(sheet: Sheet, load: Load, { deliveries, retries }: Rates, partitions: number) {
  const { section, line, choice } = sheet;
  const { payloadBytes, targetsPerMessage, kafkaCopies: copies } = load;
  const isInRecord =
    payloadBytes <= valueOf('inlinePayloadBytes') && targetsPerMessage <= valueOf('inlineTargets');
  const payload = isInRecord ? payloadBytes : 0;
  const [first, later] = [valueOf('createdRecordBytes'), valueOf('retryRecordBytes')];
  section('Kafka');
  const why = 'one for each copy; more when the disk or the traffic of one is too much';
  const brokers = choice('brokers', why, copies, 'brokers');
  const replicas = line`partitions with their copies: ${TOPICS.length} topics × ${partitions} partitions × ${copies} copies = in the cluster`;
  const megabytesPerSecond = line`written to disks: (${deliveries} records × (${payload} + ${first}) bytes + ${retries} retries × ${RECORDS_PER_RETRY} records × ${later} bytes) × ${copies} copies ÷ 1,000,000 = MB/s`;
  const created = line`message-created: ${deliveries} records × (${payload} + ${first}) bytes × 86,400 s × ${keptDaysOf(NAMES.messageCreated)} days × ${copies} copies ÷ 1,000,000,000,000 = TB`;
  // The delay topics keep their records longer than this by their delay, ten hours at most.
  const failed = line`failures and retries: ${retries} retries × ${RECORDS_PER_RETRY} records × ${later} bytes × 86,400 s × ${keptDaysOf(NAMES.deliveryFailed)} days × ${copies} copies ÷ 1,000,000,000,000 = TB`;
  const diskTerabytes = line`disk of the cluster: ${created} TB + ${failed} TB = TB`;
  return { brokers, replicas, megabytesPerSecond, diskTerabytes };
}
