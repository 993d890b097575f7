import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api, dataOf, type Schemas } from '../../api/client.ts';
import { CreateNamed, type Named } from './named-form.tsx';

export function CreateProject() {
  const client = useQueryClient();
  const navigate = useNavigate();
  return (
    <CreateNamed
      kind="project"
      create={(body: Named) => dataOf(api.POST('/projects', { body }))}
      onCreated={(projectId) => {
        void client.invalidateQueries({ queryKey: ['projects'] });
        void navigate({ to: '/projects/$projectId', params: { projectId } });
      }}
    />
  );
}

export function CreateApp({ projectId }: { projectId: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const create = (body: Named): Promise<Schemas['App']> =>
    dataOf(api.POST('/apps', { body: { description: '', ...body, projectId } }));
  return (
    <CreateNamed
      kind="app"
      create={create}
      onCreated={(appId) => {
        void client.invalidateQueries({ queryKey: ['apps'] });
        void navigate({ to: '/apps/$appId', params: { appId } });
      }}
    />
  );
}
