import { CONSTANTS } from './constants.ts';
import type { Load, Rates } from './load.ts';
import { figure, product, type Line, type Section } from './sheet.ts';

const DAY_SECONDS = 86_400;
const GIGABYTE = 1e9;
/** A primary and two secondaries, each with all data: a majority is left when one is away. */
const MEMBERS = 3;
const PER_DAY = `${figure(DAY_SECONDS)} s ÷ ${figure(GIGABYTE)}`;

const {
  mongodbWrites,
  messageOverheadBytes,
  deliveryBytes,
  attemptBytes,
  messageIndexBytes,
  deliveryIndexBytes,
  keptResponseBytes,
  storedMessageShare,
  storedDeliveryShare,
} = CONSTANTS;

export interface MongodbPlan {
  cores: number;
  /** Of each member. */
  diskTerabytes: number;
}

/** What one day adds, in gigabytes before compression. */
interface Daily {
  messages: number;
  deliveries: number;
  indexes: number;
}

export function planMongodb(load: Load, rates: Rates): MongodbPlan {
  const { messages, deliveries, indexes } = dailyOf(load, rates);
  const perDay =
    messages * storedMessageShare.value + deliveries * storedDeliveryShare.value + indexes;
  return {
    cores: writesOf(load, rates) / mongodbWrites.value,
    diskTerabytes: (perDay * load.days) / 1_000,
  };
}

function writesOf({ messagesPerSecond }: Load, { attempts }: Rates): number {
  return messagesPerSecond + attempts;
}

function dailyOf(load: Load, { deliveries, retries }: Rates): Daily {
  const perDay = DAY_SECONDS / GIGABYTE;
  const { messagesPerSecond, payloadBytes } = load;
  const kept = keptResponse(load);
  const made = deliveries * (deliveryBytes.value + kept);
  const again = retries * (attemptBytes.value + kept);
  return {
    messages: messagesPerSecond * (payloadBytes + messageOverheadBytes.value) * perDay,
    deliveries: (made + again) * perDay,
    indexes:
      (messagesPerSecond * messageIndexBytes.value + deliveries * deliveryIndexBytes.value) *
      perDay,
  };
}

/** Of each attempt: docs/contract.md C9.9. */
function keptResponse({ responseBytes }: Load): number {
  return Math.min(responseBytes, keptResponseBytes.value);
}

export function mongodbSection(load: Load, rates: Rates): Section {
  const { cores } = planMongodb(load, rates);
  const writes = writesOf(load, rates);
  return {
    title: 'MongoDB',
    lines: [
      product(
        'writes',
        `${figure(load.messagesPerSecond)} messages + ${figure(rates.attempts)} attempts`,
        writes,
        'documents/s',
      ),
      product(
        'CPU of the primary',
        `${figure(writes)} documents ÷ ${figure(mongodbWrites.value)} documents`,
        cores,
        'cores',
      ),
      ...diskLines(load, rates),
    ],
  };
}

function diskLines(load: Load, rates: Rates): Line[] {
  const { messages, deliveries, indexes } = dailyOf(load, rates);
  const { diskTerabytes } = planMongodb(load, rates);
  const sent = figure(load.messagesPerSecond);
  const bytes = `(${figure(load.payloadBytes)} + ${messageOverheadBytes.value}) bytes`;
  const kept = figure(keptResponse(load));
  const made = `${figure(rates.deliveries)} deliveries × (${deliveryBytes.value} + ${kept}) bytes`;
  const again = `${figure(rates.retries)} retries × (${attemptBytes.value} + ${kept}) bytes`;
  const messageKeys = `${sent} messages × ${messageIndexBytes.value} bytes`;
  const deliveryKeys = `${figure(rates.deliveries)} deliveries × ${deliveryIndexBytes.value} bytes`;
  const compressed = [
    `${figure(messages)} × ${storedMessageShare.value}`,
    `${figure(deliveries)} × ${storedDeliveryShare.value}`,
  ];
  const daily = `${compressed.join(' + ')} + ${figure(indexes)}`;
  return [
    product('messages', `${sent} messages × ${bytes} × ${PER_DAY}`, messages, 'GB a day'),
    product('deliveries', `(${made} + ${again}) × ${PER_DAY}`, deliveries, 'GB a day'),
    product('indexes', `(${messageKeys} + ${deliveryKeys}) × ${PER_DAY}`, indexes, 'GB a day'),
    product(
      'disk of each member',
      `(${daily}) GB × ${figure(load.days)} days ÷ 1,000`,
      diskTerabytes,
      'TB',
    ),
    product(
      'disk of the replica set',
      `${figure(diskTerabytes)} TB × ${MEMBERS} members`,
      diskTerabytes * MEMBERS,
      'TB',
    ),
  ];
}
