import { Link } from '@tanstack/react-router';
import { useSession } from '../session/session-context.ts';
import { rightsOf } from '../session/rights.ts';
import styles from './frame.module.css';

const PLACES = [
  { to: '/', name: 'Overview', isInPortal: false },
  { to: '/messages', name: 'Messages', isInPortal: true },
  { to: '/webhooks', name: 'Webhooks', isInPortal: true },
  { to: '/failures', name: 'Failures', isInPortal: false },
  { to: '/circuits', name: 'Circuits', isInPortal: false },
  { to: '/resends', name: 'Resends', isInPortal: true },
  { to: '/projects', name: 'Projects and apps', isInPortal: false },
  { to: '/api-keys', name: 'API keys', isInPortal: false },
  { to: '/audit', name: 'Audit log', isInPortal: false },
  { to: '/start', name: 'First steps', isInPortal: false },
] as const;

/** Only the pages that this session may see. */
export function Navigation() {
  const session = useSession();
  const { canReadAudit } = rightsOf(session);
  const shown = PLACES.filter(
    ({ to, isInPortal }) =>
      (session.kind === 'company' || isInPortal) && (to !== '/audit' || canReadAudit),
  );
  return (
    <nav aria-label="Pages">
      <ul className={styles.places}>
        {shown.map(({ to, name }) => (
          <li key={to}>
            <Link
              to={to}
              className={styles.place}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              activeProps={{ 'aria-current': 'page' }}
            >
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
