/** A listener beside the plaintext one. */
export interface Listener {
  /** Upper-case letters. */
  name: string;
  port: number;
  protocol: 'SSL' | 'SASL_SSL';
}

export interface KafkaServerOptions {
  dataDir: string;
  port: number;
  controllerPort: number;
  /** Reached as localhost, the name in its certificate. */
  listeners?: readonly Listener[];
  /** Further properties by name. */
  properties?: Readonly<Record<string, string>>;
}

/** Returns server.properties of a single node that is broker and controller. All replication factors are 1. */
export function serverProperties({
  dataDir,
  port,
  controllerPort,
  listeners = [],
  properties: further = {},
}: KafkaServerOptions): string {
  const others = (host: string): string[] =>
    listeners.map((listener) => `${listener.name}://${host}:${listener.port}`);
  const protocols = listeners.map(({ name, protocol }) => `${name}:${protocol}`);
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    // A static voter: a voter stored in the data would fix the ports.
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: [
      `PLAINTEXT://127.0.0.1:${port}`,
      `CONTROLLER://127.0.0.1:${controllerPort}`,
      ...others('127.0.0.1'),
    ].join(),
    'advertised.listeners': [`PLAINTEXT://127.0.0.1:${port}`, ...others('localhost')].join(),
    'listener.security.protocol.map': [
      'PLAINTEXT:PLAINTEXT',
      'CONTROLLER:PLAINTEXT',
      ...protocols,
    ].join(),
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': dataDir,
    'auto.create.topics.enable': false,
    'offsets.topic.replication.factor': 1,
    // Default 50. On one node, more partitions only cost start-up time and open files.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // Default 9 s. After a crash the controller rejects the new broker as a duplicate until this time has passed.
    'broker.session.timeout.ms': 5_000,
    'broker.heartbeat.interval.ms': 500,
    // Default 3 s, to wait for more members of a new group. Here all members join at once.
    'group.initial.rebalance.delay.ms': 0,
    ...further,
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${String(value)}\n`)
    .join('');
}

/** Returns the properties in which a broker with id 2 differs that joins the cluster of a single node. */
export function secondBroker(ports: {
  port: number;
  controllerPort: number;
}): Record<string, string> {
  return {
    'process.roles': 'broker',
    'node.id': '2',
    'controller.quorum.voters': `1@127.0.0.1:${ports.controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${ports.port}`,
  };
}
