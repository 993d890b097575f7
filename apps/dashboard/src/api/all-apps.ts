import { queryOptions } from '@tanstack/react-query';
import { dataOf, api, type Schemas } from './client.ts';

const MOST_APPS = 100;
const MOST_PROJECTS = 1_000;

export interface AppOfProject extends Pick<Schemas['App'], 'id' | 'name' | 'environment'> {
  projectId: string;
  projectName: string;
}

/** The apps of every project, for choosing one. The API lists the apps of one project at a time. */
export const allAppsQuery = queryOptions({
  queryKey: ['apps', 'all'],
  staleTime: 30_000,
  queryFn: async (): Promise<AppOfProject[]> => {
    const projects = await dataOf(
      api.GET('/api/v1/projects', { params: { query: { limit: MOST_PROJECTS } } }),
    );
    const lists = await Promise.all(projects.map(appsOf));
    return lists.flat();
  },
});

async function appsOf({
  id: projectId,
  name: projectName,
}: Schemas['Project']): Promise<AppOfProject[]> {
  const query = { projectId, limit: MOST_APPS };
  const apps = await dataOf(api.GET('/api/v1/apps', { params: { query } }));
  return apps.map(({ id, name, environment }) => ({
    id,
    name,
    environment,
    projectId,
    projectName,
  }));
}
