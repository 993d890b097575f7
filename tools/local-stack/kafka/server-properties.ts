export interface KafkaPlace {
  dataDir: string;
  port: number;
  controllerPort: number;
}

/** One node that is broker and controller at once: every replication factor is 1. */
export function serverProperties({ dataDir, port, controllerPort }: KafkaPlace): string {
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    // A fixed voter, not one stored in the data, so that the ports may change between two starts.
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': dataDir,
    'auto.create.topics.enable': false,
    'offsets.topic.replication.factor': 1,
    // 50 by default: on one node they only cost start time and open files.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // After a crash the controller takes the new broker for a twin of the killed one until this has passed (9 s by default).
    'broker.session.timeout.ms': 5_000,
    'broker.heartbeat.interval.ms': 500,
    // 3 s by default, waiting for more members of a new group; here all members are there at once.
    'group.initial.rebalance.delay.ms': 0,
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
