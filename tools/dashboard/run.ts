import { buildDashboard } from './build-dashboard.ts';

await buildDashboard();
console.log('The dashboard is built: the gateway serves it at /dashboard');
