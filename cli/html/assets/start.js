// What comes last, whatever the page.

build();
redrawAll();
