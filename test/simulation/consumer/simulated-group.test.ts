import { consumerGroupContract } from '../../support/contract/consumer-group-contract.ts';
import { installVirtualTimers } from '../deterministic/virtual-time.ts';

installVirtualTimers();
const { openSimulatedGroups } = await import('./simulated-group.ts');

consumerGroupContract(() => Promise.resolve(openSimulatedGroups()));
