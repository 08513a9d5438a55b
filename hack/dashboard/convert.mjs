// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Says the dashboard of config/dashboard, which is written as Grafana and the console of OpenShift 4 read it, in the words of Perses.

// columnsOf are the settings of a table's columns. Grafana hides what matches no earlier style; Perses wants each hidden label by name.
export function columnsOf(styles, labels) {
  const shown = styles.filter((style) => style.type !== 'hidden').map((style) => ({ name: style.pattern === 'Value' ? 'value' : style.pattern, header: style.alias }));
  const named = new Set(shown.map((column) => column.name));
  const hidden = ['timestamp', 'value', ...labels].filter((label) => !named.has(label));
  return [...shown.filter((column) => column.name !== 'Value #A'), ...hidden.map((name) => ({ name, hide: true }))];
}

function pluginOf(panel, labels) {
  switch (panel.type) {
    case 'singlestat':
      return { kind: 'StatChart', spec: { calculation: 'last', format: { unit: 'decimal' }, valueFontSize: 40, thresholds: { defaultColor: '#24292f' } } };
    case 'table':
      return { kind: 'Table', spec: { density: 'compact', defaultColumnWidth: 'auto', columnSettings: columnsOf(panel.styles, labels) } };
    case 'graph':
      return {
        kind: 'TimeSeriesChart',
        spec: {
          legend: { position: 'right', mode: 'list' }, yAxis: { min: panel.yaxes[0].min, format: { unit: 'decimal' } },
          visual: { lineWidth: 2, areaOpacity: panel.stack ? 0.5 : 0, stack: panel.stack ? 'all' : undefined },
        },
      };
    default:
      throw new Error(`panel ${panel.title} has the type ${panel.type}, which nobody has translated`);
  }
}

// convert returns the dashboard of Perses. labelsOf(expression) are the names of labels that an expression has.
export function convert(board, labelsOf) {
  const panels = {};
  const layouts = board.rows.map((row) => {
    const height = Math.round(parseInt(row.height, 10) / 31);
    let x = 0;
    let y = 0;
    let line = 0;
    const items = row.panels.map((panel) => {
      const name = `panel-${panel.id}`;
      const width = panel.span * 2;
      panels[name] = {
        kind: 'Panel',
        spec: {
          display: { name: panel.title },
          plugin: pluginOf(panel, panel.targets.flatMap((target) => labelsOf(target.expr))),
          queries: panel.targets.map((target) => ({
            kind: 'TimeSeriesQuery',
            spec: { plugin: { kind: 'PrometheusTimeSeriesQuery', spec: { query: target.expr, seriesNameFormat: target.legendFormat } } },
          })),
        },
      };
      if (x + width > 24) {
        [x, y, line] = [0, y + line, 0];
      }
      const tall = panel.type === 'singlestat' ? Math.round(height / 2) : height;
      const item = { x, y, width, height: tall, content: { $ref: `#/spec/panels/${name}` } };
      x += width;
      line = Math.max(line, tall);
      return item;
    });
    return { kind: 'Grid', spec: { display: { title: row.title, collapse: { open: true } }, items } };
  });
  return { kind: 'Dashboard', metadata: { name: board.uid, project: 'demo', version: 0 }, spec: { display: { name: board.title }, duration: '1h', panels, layouts } };
}
