import { Kafka, logLevel } from 'kafkajs';

/** A listening port is not enough: a broker that still starts up accepts connections and answers nothing. */
export async function kafkaAnswers(brokers: string): Promise<boolean> {
  const admin = new Kafka({
    clientId: 'posthorn-local-stack',
    brokers: brokers.split(',').map((broker) => broker.trim()),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 3_000,
    retry: { retries: 0 },
  }).admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    return cluster.brokers.length > 0 && cluster.controller !== null;
  } catch {
    return false;
  } finally {
    await admin.disconnect();
  }
}
