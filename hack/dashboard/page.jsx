// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Draws the dashboard with the components of Perses, from the Prometheus that answers at the page's own address, between the times "start"
// and "end" of the address, in seconds.
import { createElement as h } from 'react';
import { createRoot } from 'react-dom/client';
import { ThemeProvider } from '@mui/material';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { ChartsProvider, SnackbarProvider, generateChartsTheme, getTheme } from '@perses-dev/components';
import { PluginRegistry, RouterProvider, TimeRangeProvider, dynamicImportPluginLoader } from '@perses-dev/plugin-system';
import { Dashboard, DashboardProvider, DatasourceStoreProvider, VariableProvider } from '@perses-dev/dashboards';
import * as prometheus from '@perses-dev/prometheus-plugin';
import * as stat from '@perses-dev/stat-chart-plugin';
import * as table from '@perses-dev/table-plugin';
import * as timeSeries from '@perses-dev/timeseries-chart-plugin';
import { convert } from './convert.mjs';

const source = {
  kind: 'GlobalDatasource', metadata: { name: 'prometheus' },
  spec: { default: true, plugin: { kind: 'PrometheusDatasource', spec: { directUrl: location.origin, scrapeInterval: '1s' } } },
};
const sources = {
  getDatasource: async () => undefined, getGlobalDatasource: async () => source, listDatasources: async () => [], listGlobalDatasources: async () => [source],
};

async function labels(expressions, time) {
  const found = new Map();
  await Promise.all(expressions.map(async (expression) => {
    const answer = await (await fetch(`/api/v1/query?${new URLSearchParams({ query: expression, time })}`)).json();
    found.set(expression, [...new Set(answer.data.result.flatMap((series) => Object.keys(series.metric)))]);
  }));
  return found;
}

const times = new URLSearchParams(location.search);
const timeRange = { start: new Date(times.get('start') * 1000), end: new Date(times.get('end') * 1000) };
const board = await (await fetch('/lowlatency.json')).json();
const found = await labels(board.rows.flatMap((row) => row.panels.flatMap((panel) => panel.targets.map((target) => target.expr))), times.get('end'));
const dashboardResource = convert(board, (expression) => found.get(expression));
const theme = getTheme('light');
const plugins = [prometheus, timeSeries, stat, table].map((plugin) => ({ resource: plugin.getPluginModule(), importPlugin: async () => plugin }));
const nothing = () => {};

// Each of these gives what follows it something that it needs.
const around = [
  [RouterProvider, { navigate: nothing, RouterComponent: ({ children }) => h('span', null, children) }],
  [ThemeProvider, { theme }],
  [ChartsProvider, { chartsTheme: generateChartsTheme(theme, {}), enablePinning: false }],
  [SnackbarProvider, {}],
  [QueryClientProvider, { client: new QueryClient() }],
  [PluginRegistry, { pluginLoader: dynamicImportPluginLoader(plugins), defaultPluginKinds: { Panel: 'TimeSeriesChart', TimeSeriesQuery: 'PrometheusTimeSeriesQuery' } }],
  [TimeRangeProvider, { timeRange, refreshInterval: '0s', setTimeRange: nothing, setRefreshInterval: nothing }],
  [VariableProvider, {}],
  [DatasourceStoreProvider, { dashboardResource, datasourceApi: sources }],
  [DashboardProvider, { initialState: { dashboardResource, isEditMode: false } }],
];
createRoot(document.getElementById('root')).render(around.reduceRight((inner, [component, properties]) => h(component, properties, inner), h(Dashboard)));
