import { getRouteApi } from '@tanstack/react-router';
import { Page } from '../../parts/page.tsx';
import { MessageDetail } from './message-detail.tsx';

const route = getRouteApi('/messages/$messageId');

export function MessagePage() {
  const { messageId } = route.useParams();
  return (
    <Page title="Message">
      <MessageDetail messageId={messageId} key={messageId} />
    </Page>
  );
}
