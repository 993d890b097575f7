import type { PerService } from '../../bench/measure/per-service.ts';
import { CONSTANTS } from './constants.ts';
import { kafkaSection, planKafka, type KafkaPlan } from './kafka.ts';
import { ratesOf, retriesPerDelivery, type Load, type Rates } from './load.ts';
import { mongodbSection, planMongodb, type MongodbPlan } from './mongodb.ts';
import { replicaSteps } from './partitions.ts';
import {
  dispatcherSection,
  gatewayCoresOf,
  gatewaySection,
  planProcesses,
  retrySection,
  type Processes,
} from './processes.ts';
import { figure, product, type Section } from './sheet.ts';

const MEBIBYTE = 1_048_576;

export interface Capacity {
  processes: Processes;
  /** Numbers of dispatchers or retry processes that own equal numbers of partitions. */
  replicaSteps: number[];
  mongodb: MongodbPlan;
  kafka: KafkaPlan;
  memoryMebibytes: number;
  cores: number;
  sections: Section[];
}

/** Returns what a load needs, with the arithmetic. `limitBytes` are the memory limits of one pod of each service. */
export function planCapacity(load: Load, limitBytes: PerService<number>): Capacity {
  const rates = ratesOf(load);
  const processes = planProcesses(load, rates);
  const { partitions } = processes;
  const pods = podsSection(load, rates, processes, limitBytes);
  return {
    processes,
    replicaSteps: replicaSteps(partitions),
    mongodb: planMongodb(load, rates),
    kafka: planKafka(load, rates, partitions),
    memoryMebibytes: memoryOf(processes, limitBytes),
    cores: coresOf(load, rates),
    sections: [
      ratesSection(load, rates),
      gatewaySection(load, processes),
      dispatcherSection(load, rates, processes),
      retrySection(rates, processes),
      pods,
      mongodbSection(load, rates),
      kafkaSection(load, rates, partitions),
    ],
  };
}

function ratesSection(
  { messagesPerSecond, targetsPerMessage, failureShare }: Load,
  rates: Rates,
): Section {
  const share = retriesPerDelivery(failureShare);
  const { deliveries, retries, attempts } = rates;
  const powers = [1, 2, 3, 4, 5, 6].map((power) => `${figure(failureShare)}^${power}`).join(' + ');
  return {
    title: 'Rates',
    lines: [
      product(
        'deliveries',
        `${figure(messagesPerSecond)} messages × ${figure(targetsPerMessage)} targets`,
        deliveries,
        'deliveries/s',
      ),
      product('retries of a delivery', powers, share, 'retries'),
      product(
        'retries',
        `${figure(deliveries)} deliveries × ${figure(share)} retries`,
        retries,
        'retries/s',
      ),
      product(
        'attempts',
        `${figure(deliveries)} deliveries + ${figure(retries)} retries`,
        attempts,
        'attempts/s',
      ),
    ],
  };
}

function memoryOf(processes: Processes, limitBytes: PerService<number>): number {
  const { gateways, dispatchers, retryProcesses } = processes;
  const bytes =
    gateways * limitBytes.gateway +
    dispatchers * limitBytes.dispatcher +
    retryProcesses * limitBytes.retry;
  return bytes / MEBIBYTE;
}

function coresOf(load: Load, { attempts, retries }: Pick<Rates, 'attempts' | 'retries'>): number {
  const ms = attempts * CONSTANTS.dispatcherCpuMs.value + retries * CONSTANTS.retryCpuMs.value;
  return gatewayCoresOf(load) + ms / 1_000;
}

function podsSection(
  load: Load,
  { attempts, retries }: Rates,
  processes: Processes,
  limitBytes: PerService<number>,
): Section {
  const { gateways, dispatchers, retryProcesses } = processes;
  const mebibytes = (bytes: number): string => `${figure(bytes / MEBIBYTE)} MiB`;
  const memory = [
    `${gateways} gateways × ${mebibytes(limitBytes.gateway)}`,
    `${dispatchers} dispatchers × ${mebibytes(limitBytes.dispatcher)}`,
    `${retryProcesses} retry × ${mebibytes(limitBytes.retry)}`,
  ].join(' + ');
  const dispatcherMs = `${figure(attempts)} attempts × ${CONSTANTS.dispatcherCpuMs.value} ms`;
  const retryMs = `${figure(retries)} retries × ${CONSTANTS.retryCpuMs.value} ms`;
  return {
    title: 'All pods',
    lines: [
      product('memory', memory, memoryOf(processes, limitBytes), 'MiB of limits'),
      product(
        'CPU',
        `${figure(gatewayCoresOf(load))} cores of gateways + (${dispatcherMs} + ${retryMs}) ÷ 1,000`,
        coresOf(load, { attempts, retries }),
        'cores used',
      ),
    ],
  };
}
