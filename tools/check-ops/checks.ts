import { COMPOSE_FILE } from './image/compose-file.ts';
import { CONTAINER_IMAGE } from './image/container-image.ts';
import { HELM_CHART } from './kubernetes/helm-chart.ts';
import { OBJECT_SCHEMAS } from './kubernetes/object-schemas.ts';
import { POD_SECURITY } from './kubernetes/pod-security.ts';
import { SCALING_RULES } from './kubernetes/scaling-rules.ts';
import { MONITORING } from './monitoring/monitoring.ts';
import type { OpsCheck } from './ops-check.ts';
import { ALERTS } from './prometheus/alerts.ts';
import { PROMETHEUS_CONFIGURATION } from './prometheus/configuration.ts';
import { RESTORE_DRILL } from './restore-drill.ts';

/** Every operations check, in the order in which they run. */
export const OPS_CHECKS: readonly OpsCheck[] = [
  PROMETHEUS_CONFIGURATION,
  ALERTS,
  SCALING_RULES,
  HELM_CHART,
  OBJECT_SCHEMAS,
  POD_SECURITY,
  RESTORE_DRILL,
  MONITORING,
  COMPOSE_FILE,
  CONTAINER_IMAGE,
];
