import './theme/mantine-styles.ts';
import './theme/theme.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/query-client.ts';
import { followAddress, router, unfollowAddress } from './router.tsx';
import { Entrance } from './session/entrance.tsx';
import { colorSchemes, theme } from './theme/theme.ts';

const root = document.getElementById('root');
if (root === null) throw new Error('The page has no element #root');

// The page is loaded while the gateway says who is signed in.
followAddress();

createRoot(root).render(
  // Mantine writes no style element: the content security policy forbids them.
  <MantineProvider
    theme={theme}
    colorSchemeManager={colorSchemes}
    defaultColorScheme="auto"
    withCssVariables={false}
    withGlobalClasses={false}
  >
    <QueryClientProvider client={queryClient}>
      <Entrance pages={<RouterProvider router={router} />} onShown={unfollowAddress} />
    </QueryClientProvider>
  </MantineProvider>,
);
